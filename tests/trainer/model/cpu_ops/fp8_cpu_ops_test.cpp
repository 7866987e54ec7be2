#include "trainer/model/cpu_ops/fp8_cpu_ops.h"

#include "tests/trainer/model/fused/fp8_checks.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

template <typename Ops>
FusedLlama<BF16> model_with(const LlamaConfig& config, bool recompute = false) {
  return {config, std::make_unique<Ops>(), recompute};
}

// Loss and gradients of one pass with the weights of a seed.
template <typename Ops>
at::Tensor pass_of(const ModelShape& shape, int64_t seed, const at::Tensor& tokens,
                   bool recompute = false) {
  auto model = model_with<Ops>(shape.config, recompute);
  randomise(model.parameters(), seed);
  const auto loss = model.set_gradients(tokens, 1.0);
  return at::cat({loss.view({1}), model.parameters().gradients()});
}

at::Tensor tokens_for(const ModelShape& shape) {
  return random_tokens(shape.config, shape.sequences, shape.length);
}

}  // namespace

TEST_CASE("a layer's products are those of factors that LibTorch rounds to FP8") {
  for (const auto& shape : kFp8Shapes) {
    INFO(shape.name);
    Fp8CpuOps ops;
    ProductChecks<FusedOps<BF16>>(ops, shape, 1e-5, 1e-5).check();
  }
}

TEST_CASE("every gradient of the fp8 step together is within an eighth of fp64's") {
  for (const auto& shape : kFp8Shapes) {
    INFO(shape.name);
    auto model = model_with<Fp8CpuOps>(shape.config);
    const double error = gradient_error(model, shape, at::kCPU);
    CAPTURE(error);
    CHECK(error < 0.125);
    CHECK(error > 5e-3);  // or else nothing was rounded
  }
}

TEST_CASE("what FP8 does not take is multiplied as in bf16 to the bit") {
  for (const auto& shape : kOtherShapes) {
    INFO(shape.name);
    const auto seed = fresh_seed();
    const auto tokens = tokens_for(shape);
    CHECK(at::equal(pass_of<Fp8CpuOps>(shape, seed, tokens),
                    pass_of<CpuOps<BF16>>(shape, seed, tokens)));
  }
}

TEST_CASE("neither repetition nor recomputation changes a bit of the fp8 step") {
  for (const auto& shape : kFp8Shapes) {
    INFO(shape.name);
    const auto seed = fresh_seed();
    const auto tokens = tokens_for(shape);
    const auto once = pass_of<Fp8CpuOps>(shape, seed, tokens);
    CHECK(at::equal(once, pass_of<Fp8CpuOps>(shape, seed, tokens)));
    CHECK(at::equal(once, pass_of<Fp8CpuOps>(shape, seed, tokens, /*recompute=*/true)));
  }
}

TEST_CASE("micro-batches of any size add up and take the weights of their step") {
  const auto& shape = kFp8Shapes[0];
  auto model = model_with<Fp8CpuOps>(shape.config);
  auto& parameters = model.parameters();
  randomise(parameters, fresh_seed());
  const auto small = random_tokens(shape.config, 1, 5), tokens = tokens_for(shape);
  const auto gradients_of = [&](const at::Tensor& of) {
    auto other = model_with<Fp8CpuOps>(shape.config);
    auto values = other.parameters().values();
    values.copy_(parameters.values());
    other.set_gradients(of, 1.0);
    return other.parameters().gradients();
  };
  for (int step = 0; step < 2; ++step) {
    model.set_gradients(small, 1.0);
    model.add_gradients(tokens, 1.0);
    const auto wanted = gradients_of(small) + gradients_of(tokens);
    CHECK(norm_of(parameters.gradients() - wanted) < 1e-5 * norm_of(wanted));
    auto values = parameters.values();
    values.mul_(1.01);
  }
  parameters.gradients().zero_();
  model.add_gradients(tokens, 1.0);
  CHECK(at::equal(parameters.gradients(), gradients_of(tokens)));
}

TEST_CASE("a weight that is not finite is seen in the loss of the fp8 step") {
  const auto& shape = kFp8Shapes[0];
  for (const float bad : {std::nanf(""), HUGE_VALF}) {
    auto model = model_with<Fp8CpuOps>(shape.config);
    randomise(model.parameters(), fresh_seed());
    auto gate = model.parameters().leaf("model.layers.1.mlp.gate_proj.weight").detach();
    gate[3][5] = bad;
    CHECK(!std::isfinite(model.summed_loss(tokens_for(shape)).item<double>()));
  }
}

TEST_CASE("GPUs older than compute capability 8.9 are refused by name of the setting") {
  for (const auto& [major, minor] : {std::pair{7, 5}, {8, 0}, {8, 6}}) {
    CHECK_THROWS_AS(require_fp8(major, minor), ConfigError);
    CHECK_THROWS_WITH(
        require_fp8(major, minor),
        Catch::Contains("inner.compute") && Catch::Contains(fmt::format("{}.{}", major, minor)));
  }
  for (const auto& [major, minor] : {std::pair{8, 9}, {9, 0}, {10, 0}, {12, 0}}) {
    CHECK_NOTHROW(require_fp8(major, minor));
  }
}

}  // namespace farstep
