// Training on a GPU against training on a CPU.
#include <cmath>

#include "tests/support/catch.h"
#include "tests/trainer/inner/small_training.h"
#include "tests/trainer/model/tested_gpu.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/fused_llama.h"
#include "trainer/model/make_model.h"

namespace farstep {

namespace {

const LlamaConfig kShape{
    .vocabulary = 61, .hidden = 48, .intermediate = 80, .layers = 2, .heads = 6, .kv_heads = 2};

std::vector<double> losses(at::Device device, StepKind step, ComputeType compute) {
  auto config = inner_config();
  config.peak_learning_rate = 1e-3;
  config.step = step;
  config.compute = compute;
  const auto model = make_model(kShape, device, config, /*recompute=*/false);
  const bool is_fused = dynamic_cast<const FusedLlama<BF16>*>(model.get()) != nullptr;
  CHECK(is_fused == (step == StepKind::kFused && compute == ComputeType::kBF16));
  model->parameters().initialise(3);
  InnerStep inner(*model, config);
  std::vector<double> found;
  for (int64_t i = 0; i < 100; ++i) {
    found.push_back(inner.run(some_batch(8, 32, i % 3), 5, static_cast<double>(i) / 100).loss);
  }
  return found;
}

}  // namespace

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
