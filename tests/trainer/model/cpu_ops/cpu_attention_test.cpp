#include "trainer/model/cpu_ops/cpu_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "tests/support/catch.h"
#include "tests/support/skip_instructions.h"
#include "trainer/model/fused/arena.h"

namespace farstep {

namespace {

constexpr AttentionShape kShape{
    .sequences = 3, .length = 70, .heads = 6, .kv_heads = 2, .head_size = 16};

struct Attended {
  at::Tensor mixed, log_sums, heads_gradient;
};

BF16* values_of(at::Tensor& tensor) {
  return static_cast<BF16*>(tensor.mutable_data_ptr());
}

Attended attend_with(at::Tensor heads, at::Tensor mixed_gradient,
                     std::optional<InstructionSet> by) {
  Arena arena(at::kCPU);
  const auto scratch = arena.cut([&](ArenaCutter& cutter) {
    return cut_attention_scratch<BF16>(cutter, kShape, at::get_num_threads(), by);
  });
  Attended result{at::empty({kShape.rows(), kShape.mixed_width()}, at::kBFloat16),
                  at::empty({kShape.sequences, kShape.heads, kShape.length}, at::kFloat),
                  at::empty({kShape.rows(), kShape.width()}, at::kFloat)};
  auto* const log_sums = result.log_sums.mutable_data_ptr<float>();
  attend(kShape, values_of(heads), scratch, values_of(result.mixed), log_sums);
  attend_backward<BF16>(kShape, {values_of(heads), values_of(result.mixed), log_sums},
                        values_of(mixed_gradient), scratch,
                        result.heads_gradient.mutable_data_ptr<float>());
  return result;
}

double difference(const at::Tensor& x, const at::Tensor& y) {
  const auto exact = y.to(at::kDouble);
  return ((x.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

}  // namespace

TEST_CASE("attention of grouped heads is the same by every way and with any number of threads") {
  const auto by = GENERATE(InstructionSet::kAmx, InstructionSet::kAvx512Bf16);
  if (!attends_heads_by(by) && attends_heads_by(InstructionSet::kAvx512Bf16)) return;
  if (!attends_heads_by(by)) return skip_for_lack_of(by);
  const auto heads = at::randn({kShape.rows(), kShape.width()}).to(at::kBFloat16);
  const auto mixed_gradient = at::randn({kShape.rows(), kShape.mixed_width()}).to(at::kBFloat16);
  const auto by_products = attend_with(heads, mixed_gradient, std::nullopt);
  const auto by_heads = attend_with(heads, mixed_gradient, by);
  CHECK(difference(by_heads.mixed, by_products.mixed) < 5e-3);
  CHECK(difference(by_heads.log_sums, by_products.log_sums) < 1e-5);
  CHECK(difference(by_heads.heads_gradient, by_products.heads_gradient) < 1e-2);
  at::set_num_threads(3);
  const auto by_three = attend_with(heads, mixed_gradient, by);
  CHECK(at::equal(by_three.mixed, by_heads.mixed));
  CHECK(at::equal(by_three.heads_gradient, by_heads.heads_gradient));
}

}  // namespace farstep
