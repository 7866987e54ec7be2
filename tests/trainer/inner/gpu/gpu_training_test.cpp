// Training on a GPU against training on a CPU.
#include <cmath>
#include <stdexcept>
#include <utility>

#include "tests/support/catch.h"
#include "tests/trainer/inner/small_training.h"
#include "tests/trainer/model/gpu_ops/tested_gpu.h"
#include "trainer/inner/gpu/graph_recorder.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/batch_tensors.h"
#include "trainer/model/fused/fused_llama.h"
#include "trainer/model/language/make_model.h"
#include "trainer/rate/rate_schedule.h"

namespace farstep {

namespace {

const LlamaConfig kShape{
    .vocabulary = 61, .hidden = 48, .intermediate = 80, .layers = 2, .heads = 6, .kv_heads = 2};

std::vector<double> losses(at::Device device, StepKind step, ComputeType compute) {
  auto config = inner_config();
  config.rate.peak_learning_rate = 1e-3;
  config.step = step;
  config.compute = compute;
  const auto model = make_model(kShape, device, config.compute, config.step, /*recompute=*/false);
  const bool is_fused = dynamic_cast<const FusedLlama<BF16>*>(model.get()) != nullptr;
  CHECK(is_fused == (step == StepKind::kFused && compute == ComputeType::kBF16));
  model->parameters().initialise(3);
  InnerStep inner(*model, config);
  std::vector<double> found;
  const auto cycle = first_cycle(config.rate, 100);
  for (int64_t i = 0; i < 100; ++i) {
    const double share = rate_share(config.rate, cycle, static_cast<double>(i));
    found.push_back(inner.run(some_batch(8, 32, i % 3), 5, share).loss);
  }
  return found;
}

// What twenty steps of two shapes become, and the values they leave.
struct Trained {
  std::vector<double> losses, norms;
  at::Tensor values;
};

Trained train(at::Device gpu, bool graph, bool late) {
  auto config = inner_config();
  config.compute = ComputeType::kBF16;
  config.cuda_graph = graph;
  const auto model = make_model(kShape, gpu, config.compute, config.step, /*recompute=*/false);
  model->parameters().initialise(3);
  InnerStep inner(*model, config);
  REQUIRE(inner.may_be_late());
  Trained trained;
  const auto add = [&](const std::optional<StepResult>& result) {
    if (!result) return;
    trained.losses.push_back(result->loss);
    trained.norms.push_back(result->gradient_norm);
    CHECK(result->device_seconds.front() > 0);
  };
  for (int64_t i = 0; i < 20; ++i) {
    const auto batch = some_batch(i % 5 == 4 ? 9 : 6, 32, i);
    const double progress = static_cast<double>(i) / 20;
    if (late) {
      add(inner.start(batch, std::vector{batch.sequences}, 4, progress));
    } else {
      add(inner.run(batch, 4, progress));
    }
  }
  add(inner.finish());
  trained.values = model->parameters().values().cpu();
  return trained;
}

}  // namespace

TEST_CASE("the fused step on a GPU can be recorded and replayed", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  auto config = inner_config();
  config.compute = ComputeType::kBF16;
  const auto model = make_model(kShape, *gpu, config.compute, config.step, /*recompute=*/false);
  model->parameters().initialise(3);
  const auto batch = some_batch(4, 32, 1);
  const auto tokens = batch_tensors(batch, 0, 4, *gpu);
  const auto wanted_loss = model->set_gradients(tokens, 1.0).item<float>();
  auto gradients = model->parameters().gradients();
  const auto wanted = gradients.clone();
  at::Tensor loss;
  const auto recorder = make_graph_recorder(*gpu);
  const auto recording = recorder->record([&] { loss = model->set_gradients(tokens, 1.0); });
  for (int i = 0; i < 3; ++i) {
    gradients.fill_(std::nanf(""));
    recording->replay();
    CHECK(at::equal(gradients, wanted));
    CHECK(loss.item<float>() == wanted_loss);
  }
  CHECK_THROWS_AS(recorder->record([] { throw std::runtime_error("not this"); }),
                  std::runtime_error);
  model->set_gradients(tokens, 1.0);  // the device takes work as before
  CHECK(at::equal(gradients, wanted));
  loss.reset();  // before the memory that it is in
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

TEST_CASE("graphs and results known late change no bit of training on a GPU", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  const auto wanted = train(*gpu, /*graph=*/false, /*late=*/false);
  REQUIRE(wanted.losses.size() == 20);
  for (const auto& [graph, late] : {std::pair{true, false}, {false, true}, {true, true}}) {
    const auto found = train(*gpu, graph, late);
    CHECK(found.losses == wanted.losses);
    CHECK(found.norms == wanted.norms);
    CHECK(at::equal(found.values, wanted.values));
  }
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

TEST_CASE("training on a GPU has the losses of training on a CPU", "[gpu]") {
  const auto gpu = tested_gpu();
  if (!gpu) return;
  const auto oracle = losses(at::kCPU, StepKind::kAutograd, ComputeType::kFP32);
  const auto fused = losses(*gpu, StepKind::kFused, ComputeType::kBF16);
  const auto autograd = losses(*gpu, StepKind::kAutograd, ComputeType::kFP32);
  CHECK(oracle.back() < oracle.front());
  for (std::size_t i = 0; i < oracle.size(); ++i) {
    CHECK(std::abs(fused[i] - oracle[i]) < 0.01);
    CHECK(std::abs(autograd[i] - oracle[i]) < 1e-3);
  }
}

}  // namespace farstep
