// A step that a stop ends in its middle, at every place where it can: it has not begun.
#include <ATen/Parallel.h>

#include "tests/support/catch.h"
#include "tests/trainer/inner/site_training.h"
#include "tests/trainer/run/small_examples.h"
#include "trainer/base/checksum.h"
#include "trainer/base/stopped.h"
#include "trainer/data/loader.h"
#include "trainer/model/evaluate.h"
#include "trainer/run/model_training.h"

namespace farstep {
namespace {

// Requests a stop at its n-th moment: a micro-batch begins, or backward has completed a part of the
// gradient, as it does after each layer.
struct Moments {
  std::stop_source stop;
  int64_t stop_at = -1;
  int64_t count = 0;

  void pass() {
    if (count++ == stop_at) stop.request_stop();
  }
};

class Watched : public TrainableModel {
 public:
  Watched(std::unique_ptr<TrainableModel> model, Moments& moments)
      : model_(std::move(model)), moments_(moments) {}
  Parameters& parameters() override { return model_->parameters(); }
  at::Tensor summed_loss(at::TensorList batch, const std::stop_token& stop) override {
    return model_->summed_loss(batch, stop);
  }
  at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) override {
    moments_.pass();
    auto watched = pass;
    watched.ready = [&](int64_t begin, int64_t end) {
      if (pass.ready) pass.ready(begin, end);
      moments_.pass();
    };
    return model_->backpropagate(batch, watched);
  }

 private:
  const std::unique_ptr<TrainableModel> model_;
  Moments& moments_;
};

// A site that trains the small model; the last of its devices is watched.
class WatchedSite {
 public:
  WatchedSite(const InnerConfig& config, std::size_t devices)
      : model_(make(config, devices == 1)),
        inner_(*model_, config, others(config, devices)),
        training_(inner_, model_->parameters().host_values(),
                  std::make_unique<Loader>(examples_, Sampler(DataOrder::kSequential, 0, 100)),
                  std::vector(devices, EmulatedSpeed(std::nullopt)),
                  std::vector(devices, std::optional(0.1)), clock_) {
    model_->parameters().initialise(5);
    training_.begin({.sites = {{.batch = kBatch}}});
  }

  double step(int64_t number, const std::stop_token& stop) {
    if (inner_.num_devices() == 1) {
      const StepOrder order{.step = number, .batch = kBatch, .micro_batch = 2, .rate_share = 0.5};
      return training_.step(order, nullptr, stop)->event.loss.value();
    }
    // With shares that are given: those of a balance, and so the bits, depend on times.
    const auto batch = examples_.read(std::vector<int64_t>(kBatch, number));
    const std::vector<int64_t> shares(inner_.num_devices(), kBatch / inner_.num_devices());
    return inner_.run(batch.view, shares, 1, 0.5, stop).loss;
  }
  // Checksum of all that a checkpoint has of the site.
  std::string state() {
    std::vector<std::byte> bytes;
    for (const auto& buffer : inner_.pull_state()) {
      bytes.insert(bytes.end(), buffer.bytes.begin(), buffer.bytes.end());
    }
    const auto values = std::as_bytes(model_->parameters().host_values().pull());
    bytes.insert(bytes.end(), values.begin(), values.end());
    return checksum_text(checksum(bytes));
  }

  Moments moments;

 private:
  static constexpr std::size_t kBatch = 6;

  std::unique_ptr<TrainableModel> make(const InnerConfig& config, bool is_watched) {
    auto model = make_model(kSmallConfig, at::kCPU, config.compute, config.step, false);
    if (!is_watched) return model;
    return std::make_unique<Watched>(std::move(model), moments);
  }
  std::vector<std::unique_ptr<Replica>> others(const InnerConfig& config, std::size_t devices) {
    std::vector<std::unique_ptr<Replica>> replicas;
    while (replicas.size() + 1 < devices) {
      const bool is_last = replicas.size() + 2 == devices;
      replicas.push_back(std::make_unique<Replica>([&, is_last] {
        at::set_num_threads(1);
        return make(config, is_last);
      }));
    }
    return replicas;
  }

  RealClock clock_;
  const SmallExamples examples_;
  const std::unique_ptr<TrainableModel> model_;
  InnerStep inner_;
  ModelTraining training_;
};

struct Kind {
  ComputeType compute;
  StepKind step;
  std::size_t devices;
  ReductionKind reduction;
};

const std::vector<Kind> kKinds{
    {ComputeType::kFP32, StepKind::kFused, 1, ReductionKind::kBuckets},
    {ComputeType::kBF16, StepKind::kFused, 1, ReductionKind::kBuckets},
    {ComputeType::kFP8, StepKind::kFused, 1, ReductionKind::kBuckets},
    {ComputeType::kFP32, StepKind::kAutograd, 1, ReductionKind::kBuckets},
    {ComputeType::kFP32, StepKind::kFused, 3, ReductionKind::kBuckets},
    {ComputeType::kFP32, StepKind::kFused, 3, ReductionKind::kMaster},
};

}  // namespace

TEST_CASE("a step that is stopped anywhere has not begun, and is taken again with the same bits") {
  for (const auto& kind : kKinds) {
    auto config = inner_config();
    config.compute = kind.compute;
    config.step = kind.step;
    config.reduction = kind.reduction;
    WatchedSite whole(config, kind.devices);
    whole.step(1, {});
    const int64_t first_moments = whole.moments.count;
    const auto after_first = whole.state();
    const double loss = whole.step(2, {});
    const auto after_second = whole.state();
    const int64_t moments = whole.moments.count - first_moments;
    const bool is_fused = kind.step == StepKind::kFused;
    const int64_t micro_batches = kind.devices == 1 ? 3 : 2;
    // The fused backward completes four parts: head with norm, two layers, embedding.
    REQUIRE(moments == micro_batches * (is_fused ? 5 : 2));
    // After the products of the last layer the step is taken all the same.
    const int64_t too_late = is_fused ? 2 : 1;
    for (int64_t moment = 0; moment < moments - too_late; ++moment) {
      INFO("stopped at moment " << moment << " of " << moments << ", " << kind.devices
                                << " devices");
      WatchedSite site(config, kind.devices);
      site.step(1, {});
      site.moments.stop_at = first_moments + moment;
      CHECK_THROWS_AS(site.step(2, site.moments.stop.get_token()), Stopped);
      CHECK(site.state() == after_first);
      CHECK(site.step(2, {}) == loss);  // of the same data
      CHECK(site.state() == after_second);
    }
  }
}

TEST_CASE("a stop at the end of a step is too late for it") {
  WatchedSite whole(inner_config(), 1), site(inner_config(), 1);
  whole.step(1, {});
  site.moments.stop_at = whole.moments.count - 1;
  site.step(1, site.moments.stop.get_token());
  CHECK(site.moments.stop.stop_requested());
  CHECK(site.state() == whole.state());
}

TEST_CASE("a validation that is stopped has no result") {
  std::stop_source stopped;
  stopped.request_stop();
  for (const auto step : {StepKind::kFused, StepKind::kAutograd}) {
    const auto model = make_model(kSmallConfig, at::kCPU, ComputeType::kFP32, step, false);
    const auto batch = some_batch(2, 9, 1);
    const auto tokens = at::tensor(batch.tokens).view({2, 10});
    CHECK_THROWS_AS(model->summed_loss(tokens, stopped.get_token()), Stopped);
    CHECK_THROWS_AS(evaluate(*model, SmallExamples(), {.batch = 8}, stopped.get_token()), Stopped);
  }
}

}  // namespace farstep
