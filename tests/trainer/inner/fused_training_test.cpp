#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"
#include "tests/trainer/inner/small_training.h"
#include "trainer/inner/inner_step.h"
#include "trainer/model/language/make_model.h"
#include "trainer/rate/rate_schedule.h"

namespace farstep {

namespace {

const LlamaConfig kShape{
    .vocabulary = 61, .hidden = 48, .intermediate = 80, .layers = 2, .heads = 4, .kv_heads = 2};

// The next token is, but for every 16th one, that by the step of its sequence: something to learn.
TokenBatch learnable_batch(int64_t seed) {
  TokenBatch batch{.sequences = 8, .length = 32, .tokens = {}};
  for (int64_t sequence = 0; sequence < batch.sequences; ++sequence) {
    const int64_t start = seed * 31 + sequence * 17, step = 1 + (seed + sequence) % 5;
    for (int64_t i = 0; i <= batch.length; ++i) {
      const int64_t token = i % 16 == 15 ? start * i : start + i * step;
      batch.tokens.push_back(token % kShape.vocabulary);
    }
  }
  return batch;
}

std::vector<double> losses(StepKind step, ComputeType compute) {
  auto config = inner_config();
  config.rate.peak_learning_rate = 1e-3;
  config.step = step;
  config.compute = compute;
  const auto model = make_model(kShape, at::kCPU, config.compute, config.step, /*recompute=*/false);
  model->parameters().initialise(3);
  InnerStep inner(*model, config);
  std::vector<double> found;
  const auto cycle = first_cycle(config.rate, 200);
  for (int64_t i = 0; i < 200; ++i) {
    const double share = rate_share(config.rate, cycle, static_cast<double>(i));
    found.push_back(inner.run(learnable_batch(i), 5, share).loss);
  }
  return found;
}

double largest_difference(ComputeType compute) {
  const auto oracle = losses(StepKind::kAutograd, ComputeType::kFP32);
  const auto fused = losses(StepKind::kFused, compute);
  CHECK(oracle.back() < 0.7 * oracle.front());
  double largest = 0;
  for (std::size_t i = 0; i < oracle.size(); ++i) {
    largest = std::max(largest, std::abs(fused[i] - oracle[i]));
  }
  return largest;
}

}  // namespace

TEST_CASE("two hundred fused steps in fp32 have the losses of autograd") {
  CHECK(largest_difference(ComputeType::kFP32) < 1e-4);
}

TEST_CASE("two hundred fused steps in bf16 stay within a hundredth nat of autograd in fp32") {
  CHECK(largest_difference(ComputeType::kBF16) < 0.01);
}

TEST_CASE("two hundred fused steps in fp8 stay within a twentieth nat of autograd in fp32") {
  CHECK(largest_difference(ComputeType::kFP8) < 0.05);
}

}  // namespace farstep
