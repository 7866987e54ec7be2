#include "trainer/model/language/make_model.h"

#include "tests/support/catch.h"
#include "tests/trainer/model/llama/small_model.h"
#include "trainer/base/error.h"
#include "trainer/model/fused/fused_llama.h"

namespace farstep {

namespace {

template <typename Model>
bool makes(StepKind step, ComputeType compute) {
  const auto model = make_model(kSmallConfig, at::kCPU, compute, step, /*recompute=*/false);
  return dynamic_cast<const Model*>(model.get()) != nullptr;
}

}  // namespace

TEST_CASE("the model is the one that step and compute ask for") {
  CHECK(makes<FusedLlama<BF16>>(StepKind::kFused, ComputeType::kBF16));
  CHECK(makes<FusedLlama<BF16>>(StepKind::kFused, ComputeType::kFP8));
  CHECK(makes<FusedLlama<float>>(StepKind::kFused, ComputeType::kFP32));
  CHECK(makes<FusedLlama<float>>(StepKind::kFused, ComputeType::kAuto));
  CHECK(makes<Llama>(StepKind::kAutograd, ComputeType::kBF16));
  CHECK(makes<Llama>(StepKind::kAutograd, ComputeType::kFP32));
}

TEST_CASE("a model without the fused step has no fp8") {
  CHECK_THROWS_WITH(make_model(kSmallConfig, at::kCPU, ComputeType::kFP8, StepKind::kAutograd,
                               /*recompute=*/false),
                    Catch::Contains("inner.compute"));
}

TEST_CASE("what the model cannot compute again it is not asked to") {
  const auto with_recompute = [](StepKind step) {
    return make_model(kSmallConfig, at::kCPU, ComputeType::kAuto, step, /*recompute=*/true);
  };
  CHECK_THROWS_AS(with_recompute(StepKind::kAutograd), ConfigError);
  CHECK(with_recompute(StepKind::kFused) != nullptr);
}

}  // namespace farstep
