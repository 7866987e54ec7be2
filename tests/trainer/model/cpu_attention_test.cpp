#include "trainer/model/cpu_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "tests/support/amx.h"
#include "tests/support/catch.h"
#include "trainer/model/arena.h"

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

Attended attend_with(at::Tensor heads, at::Tensor mixed_gradient, bool by_amx) {
  Arena arena(at::kCPU);
  const auto scratch = arena.cut([&](ArenaCutter& cutter) {
    return cut_attention_scratch<BF16>(cutter, kShape, at::get_num_threads(), by_amx);
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

TEST_CASE("attention of grouped heads is the same by either way and with any number of threads") {
  if (lacks_amx()) return;
  const auto heads = at::randn({kShape.rows(), kShape.width()}).to(at::kBFloat16);
  const auto mixed_gradient = at::randn({kShape.rows(), kShape.mixed_width()}).to(at::kBFloat16);
  const auto by_products = attend_with(heads, mixed_gradient, /*by_amx=*/false);
  const auto by_amx = attend_with(heads, mixed_gradient, /*by_amx=*/true);
  CHECK(difference(by_amx.mixed, by_products.mixed) < 5e-3);
  CHECK(difference(by_amx.log_sums, by_products.log_sums) < 1e-5);
  CHECK(difference(by_amx.heads_gradient, by_products.heads_gradient) < 1e-2);
  at::set_num_threads(3);
  const auto by_three = attend_with(heads, mixed_gradient, /*by_amx=*/true);
  CHECK(at::equal(by_three.mixed, by_amx.mixed));
  CHECK(at::equal(by_three.heads_gradient, by_amx.heads_gradient));
}

}  // namespace farstep
