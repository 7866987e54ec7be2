#include "trainer/model/gpu_ops/fp8_gpu_ops.h"

#include "tests/trainer/model/fused/fp8_checks.h"
#include "tests/trainer/model/gpu_ops/tested_gpu.h"

namespace farstep {

namespace {

// Flash attention takes heads of a multiple of 8 values.
bool gpu_takes(const ModelShape& shape) {
  return shape.config.head_size() % 8 == 0;
}

FusedLlama<BF16> fp8_model_on(at::Device gpu, const LlamaConfig& config, bool recompute = false) {
  return {config, std::make_unique<Fp8GpuOps>(gpu), recompute};
}

}  // namespace

TEST_CASE("a layer's products on a GPU are those of factors that LibTorch rounds to FP8", "[gpu]") {
  const auto gpu = tested_fp8_gpu();
  if (!gpu) return;
  for (const auto& shape : kFp8Shapes) {
    INFO(shape.name);
    Fp8GpuOps ops(*gpu);
    // Forward, Hopper adds with fewer bits; branches and gradients in norms are bf16.
    ProductChecks(ops, shape, gpu->is_cpu() ? 1e-5 : 2e-3, 4e-3).check();
  }
}

TEST_CASE("every gradient of the fp8 step on a GPU is within an eighth of fp64's", "[gpu]") {
  const auto gpu = tested_fp8_gpu();
  if (!gpu) return;
  for (const auto& shape : kFp8Shapes) {
    if (!gpu_takes(shape)) continue;
    INFO(shape.name);
    auto model = fp8_model_on(*gpu, shape.config);
    const double error = gradient_error(model, shape, *gpu);
    CAPTURE(error);
    CHECK(error < 0.125);
    CHECK(error > 5e-3);  // or else nothing was rounded
  }
}

TEST_CASE("what FP8 does not take is multiplied on a GPU as in bf16 to the bit", "[gpu]") {
  const auto gpu = tested_fp8_gpu();
  if (!gpu) return;
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  for (const auto& shape : kOtherShapes) {
    if (!gpu_takes(shape)) continue;
    INFO(shape.name);
    const auto seed = fresh_seed();
    const auto tokens = random_tokens(shape.config, shape.sequences, shape.length).to(*gpu);
    const auto pass = [&](std::unique_ptr<GpuOps> ops) {
      FusedLlama<BF16> model(shape.config, std::move(ops));
      randomise(model.parameters(), seed);
      const auto loss = model.set_gradients(tokens, 1.0);
      return at::cat({loss.view({1}), model.parameters().gradients()});
    };
    CHECK(at::equal(pass(std::make_unique<Fp8GpuOps>(*gpu)), pass(std::make_unique<GpuOps>(*gpu))));
  }
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

TEST_CASE("micro-batches on a GPU take the weights of their step with and without recomputation",
          "[gpu]") {
  const auto gpu = tested_fp8_gpu();
  if (!gpu) return;
  const auto& shape = kFp8Shapes[0];
  auto model = fp8_model_on(*gpu, shape.config), other = fp8_model_on(*gpu, shape.config, true);
  randomise(model.parameters(), fresh_seed());
  const auto tokens = random_tokens(shape.config, shape.sequences, shape.length).to(*gpu);
  auto values = model.parameters().values(), other_values = other.parameters().values();
  for (int step = 0; step < 2; ++step) {
    model.set_gradients(tokens, 1.0);
    model.add_gradients(tokens, 1.0);
    other_values.copy_(values);
    other.set_gradients(tokens, 2.0);  // which scales take up
    const auto wanted = other.parameters().gradients();
    CHECK(norm_of(model.parameters().gradients() - wanted) < 2e-2 * norm_of(wanted));
    values.mul_(1.1);
  }
}

}  // namespace farstep
