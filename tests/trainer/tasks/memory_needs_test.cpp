#include "trainer/tasks/memory_needs.h"

#include <ATen/Parallel.h>

#include "tests/support/catch.h"
#include "tests/trainer/model/convnet/small_images.h"
#include "tests/trainer/tasks/small_tokens.h"
#include "trainer/base/error.h"
#include "trainer/model/cpu_ops/cpu_ops.h"
#include "trainer/model/cpu_ops/fp8_cpu_ops.h"
#include "trainer/model/fused/fused_llama.h"

namespace farstep {

namespace {

using Catch::Contains;

constexpr int64_t kParameters = 1'000'000;
constexpr int64_t kModel = 4 * kParameters;

// A model of one matrix, of which nothing but the size counts without a micro-batch.
const std::vector<ParameterSpec> kLayout{{.name = "matrix", .shape = {kParameters}}};

struct SiteInRun {
  explicit SiteInRun(const std::vector<DeviceKind>& kinds) : data("", ModelFamily::kLanguage) {
    config.name = "a";
    for (const auto kind : kinds) config.devices.emplace_back().kind = kind;
    for (const auto* const name : {"a", "b"}) run.sites.emplace_back().name = name;
    run.data.sequence_length = 16;
  }
  SiteOfRun at() { return {config, run, source, data}; }
  MemoryNeeds needs(int64_t micro_batch = 0) { return memory_needs(at(), kLayout, micro_batch); }
  heterogeneity::SitePlan work(std::optional<heterogeneity::SiteProfile> profile = {}) {
    return first_work(at(), profile);
  }

  SiteConfig config;
  RunConfig run;
  const std::string source = "run.json";
  SiteData data;
};

template <typename Ops>
void check_arrays(const LlamaConfig& shape, ComputeType compute, bool recompute) {
  using T = std::conditional_t<std::is_same_v<Ops, CpuOps<float>>, float, BF16>;
  constexpr int64_t kSequences = 3, kLength = 40;
  FusedLlama<T> model(shape, std::make_unique<Ops>(), recompute);
  model.parameters().initialise(1);
  model.set_gradients(at::zeros({kSequences, kLength + 1}, at::kLong), 1);
  DeviceConfig device;
  device.recompute = recompute;
  device.threads = at::get_num_threads();
  const auto memory = llama_pass_memory(shape, {device, compute}, kSequences, kLength);
  const auto counted = memory.activations_bytes + memory.logits_bytes;
  if (compute == ComputeType::kFP8) {
    // Its rounded factors come on top: those of the weights count as weights.
    CHECK(counted < model.activation_bytes());
    return;
  }
  CHECK(counted == model.activation_bytes());
}

}  // namespace

TEST_CASE("a micro-batch of the fused model takes what its arrays take") {
  const LlamaConfig shape{
      .vocabulary = 301, .hidden = 24, .intermediate = 40, .layers = 3, .heads = 4, .kv_heads = 2};
  for (const bool recompute : {false, true}) {
    check_arrays<CpuOps<float>>(shape, ComputeType::kFP32, recompute);
    check_arrays<CpuOps<BF16>>(shape, ComputeType::kBF16, recompute);
    check_arrays<Fp8CpuOps>(shape, ComputeType::kFP8, recompute);
  }
}

// The terms are those of the table in ARCHITECTURE.md, added by hand.
TEST_CASE("the needs of a run are the sum of the table's terms") {
  SiteInRun site({DeviceKind::kCpu});
  const auto needs = site.needs();
  CHECK(needs.host.weights_bytes == kModel);
  CHECK(needs.host.gradients_bytes == kModel);
  CHECK(needs.host.moments_bytes == 2 * kModel);
  // theta_global and momentum 2; the fragment 1; the other's delta of half of it; chunks, at most
  // the fragment.
  CHECK(needs.host.outer_bytes == 4 * kModel + kModel / 2);
  CHECK(needs.host.checkpoint_bytes == 2 * kModel);
  CHECK(needs.disk_bytes == 4 * kModel);

  site.run.sync.fragments = 4;
  site.run.sync.delay_steps = 5;
  site.run.sync.codec.kind = outer_optimizer::CodecKind::kInt8;
  // 2; 1/4; under way 2/4; residuals 1 + 1/2, and those of the sync under way a quarter of that;
  // the other's delta 1/8, chunks 1/4.
  const auto streamed = site.needs();
  CHECK(streamed.host.outer_bytes == 2 * kModel + kModel / 4 + kModel / 2 + 3 * kModel / 2 +
                                         3 * kModel / 8 + kModel / 8 + kModel / 4);
  CHECK(streamed.host.checkpoint_bytes == 3 * kModel);
  CHECK(streamed.disk_bytes == 5 * kModel + 3 * kModel / 2);

  SiteInRun eager({DeviceKind::kCpu});
  eager.run.strategy.kind = outer_optimizer::StrategyKind::kEagerUpdates;
  CHECK(eager.needs().host.outer_bytes == (4 + 3) * kModel + kModel / 2);
  CHECK(eager.needs().host.checkpoint_bytes == 3 * kModel);
}

TEST_CASE("each device has its own memory, and the optimizer decides the moments") {
  SiteInRun gpus({DeviceKind::kCuda, DeviceKind::kCuda});
  const auto needs = gpus.needs();
  CHECK(needs.host.weights_bytes == 0);
  REQUIRE(needs.gpus.size() == 2);
  for (const auto& gpu : needs.gpus) CHECK(gpu.value().total() == 4 * kModel);
  gpus.run.inner.reduction = ReductionKind::kMaster;
  CHECK(gpus.needs().gpus[1].value().total() == 2 * kModel);
  CHECK(SiteInRun({}).needs().host.weights_bytes == kModel);  // a server updates on the CPU
  SiteInRun two({DeviceKind::kCpu, DeviceKind::kCpu});
  CHECK(two.needs().host.moments_bytes == 4 * kModel);
  two.run.inner.optimizer = InnerOptimizer::kSgd;
  CHECK(two.needs().host.moments_bytes == 0);
  two.run.inner.optimizer = InnerOptimizer::kMuon;
  auto hidden = kLayout;
  hidden[0].is_hidden_matrix = true;
  CHECK(memory_needs(two.at(), hidden, 0).host.moments_bytes == 2 * kModel);
}

TEST_CASE("activations grow with the micro-batch, and the program names one that fits") {
  SiteInRun site({DeviceKind::kCpu});
  const auto layout = family_of(site.run).layout(site.at());
  const auto total = [&](int64_t micro_batch) {
    return memory_needs(site.at(), layout, micro_batch).host.total();
  };
  CHECK(total(2) > total(1));
  CHECK(total(1) > total(0));
  const auto room = require_memory(site.at(), layout, 64, 10 * total(64));
  CHECK_FALSE(room.is_tight);
  CHECK_THAT(room.text, Contains("micro-batches of 64") && Contains("activations"));
  CHECK(room.figures.at("host").at("activations_bytes") > 0);
  CHECK(require_memory(site.at(), layout, 64, total(64)).is_tight);
  CHECK_THROWS_WITH(
      require_memory(site.at(), layout, 64, total(9)),
      Catch::StartsWith("run.json: with micro-batches of 64") && Catch::EndsWith("to at most 9"));
  CHECK_THROWS_WITH(require_memory(site.at(), layout, 64, total(1) - 1),
                    Contains("a smaller model"));
  CHECK_NOTHROW(require_memory(site.at(), layout, 64, std::nullopt));
}

TEST_CASE("images take memory by image and layer") {
  const SmallImages images;
  SiteInRun site({DeviceKind::kCpu});
  site.run = small_image_run();
  site.config.data = images.path().string();
  SiteData data(images.path(), ModelFamily::kImages);
  const SiteOfRun at{site.config, site.run, site.source, data};
  const auto memory = [&](int64_t examples) {
    return family_of(site.run).pass_memory(at, site.config.devices[0], examples);
  };
  CHECK(memory(8).activations_bytes == 8 * memory(1).activations_bytes);
  CHECK(memory(8).logits_bytes > 0);
}

TEST_CASE("the work of the first round is the run file's, and impossible work is refused") {
  SiteInRun site({DeviceKind::kCpu, DeviceKind::kCpu});
  site.run.plan.base_batch = 9;
  CHECK(site.work().batch == 9);
  CHECK(site.work().micro_batch == 5);  // the larger share of two devices
  site.run.plan.micro_batch = 3;
  CHECK(site.work().micro_batch == 3);
  heterogeneity::SiteProfile profile;
  profile.devices.emplace_back().max_micro_batch = 2;
  CHECK(site.work(profile).micro_batch == 2);
  site.run.plan.micro_batch = 10;
  CHECK_THROWS_WITH(site.work(), Catch::StartsWith("run.json: plan.micro_batch: is 10") &&
                                     Contains("at most the batch of a, 9"));
  site.run.plan.policy = heterogeneity::Policy::kHybrid;
  CHECK_THROWS_WITH(site.work(), Contains("plan.micro_batch"));
  site.run.plan.micro_batch = 4;
  site.run.sites[0].batch = 20;
  CHECK(site.work().batch == 20);
  site.config.name = "newcomer";  // of an open run
  CHECK(site.work().batch == 9);
  CHECK(site.work().micro_batch == 4);
}

}  // namespace farstep
