#include "trainer/model/matmul/product_way.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/processor/instruction_set.h"

namespace farstep {

namespace {

template <typename T>
constexpr auto kType = sizeof(T) == 4 ? at::kFloat : at::kBFloat16;

// A matrix (rows, columns) as a factor whose rows lie 3 values further apart than they must.
template <typename T>
struct Stored {
  Stored(int64_t rows, int64_t columns, bool transposed)
      : memory(at::randn({transposed ? columns : rows, (transposed ? rows : columns) + 3})
                   .to(kType<T>)),
        factor{static_cast<const T*>(memory.const_data_ptr()), memory.size(1), transposed} {
    const auto lies = memory.narrow(1, 0, memory.size(1) - 3).to(at::kDouble);
    exact = transposed ? lies.t() : lies;
  }

  at::Tensor memory, exact;
  Factor<T> factor;
};

ProductWay way_at(int i) {
  return static_cast<ProductWay>(i);
}

}  // namespace

TEMPLATE_TEST_CASE("products are those of fp64 by every way", "", float, BF16) {
  const auto way = way_at(GENERATE(range(0, kProductWays)));
  if (!can_multiply_by<TestType>(way)) return;  // libtorch always can
  INFO(name_of(way));
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 7}, {64, 33, 129}, {300, 520, 70}}) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        const Stored<TestType> a(m, k, a_transposed), b(k, n, b_transposed);
        const auto product = at::mm(a.exact, b.exact);
        auto c = at::full({m, n + 2}, std::nan(""), at::kFloat);
        auto* const values = c.template mutable_data_ptr<float>();
        const auto once = c.narrow(1, 0, n);
        multiply_by(way, m, n, k, a.factor, b.factor, Product{values, n + 2});
        CHECK(at::allclose(once.to(at::kDouble), product, 1e-4, 1e-4));
        multiply_by(way, m, n, k, a.factor, b.factor, Product{values, n + 2, true});
        CHECK(at::allclose(once.to(at::kDouble), 2 * product, 1e-4, 1e-4));
        CHECK(c.narrow(1, n, 2).isnan().all().template item<bool>());
      }
    }
  }
}

TEMPLATE_TEST_CASE("a product by panels has the same bits with any number of threads", "", float,
                   BF16) {
  const auto way = way_at(GENERATE(range(0, static_cast<int>(ProductWay::kMkl))));
  if (!can_multiply_by<TestType>(way)) return;
  INFO(name_of(way));
  const int threads = at::get_num_threads();
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {40, 600, 70}, {700, 40, 70}}) {
    for (const bool a_transposed : {false, true}) {
      const Stored<TestType> a(m, k, a_transposed), b(k, n, false);
      std::vector<at::Tensor> made;
      for (const int count : {1, 2, 3, 5}) {
        at::set_num_threads(count);
        made.push_back(at::empty({m, n}, at::kFloat));
        multiply_by(way, m, n, k, a.factor, b.factor,
                    {made.back().template mutable_data_ptr<float>(), n});
      }
      for (const auto& product : made) CHECK(at::equal(product, made.front()));
    }
  }
  at::set_num_threads(threads);
}

TEST_CASE("a limit of the instructions takes the ways beyond it away") {
  limit_instruction_set(InstructionSet::kBaseline);
  for (const auto way :
       {ProductWay::kAmx, ProductWay::kAvx512Bf16, ProductWay::kAvx512, ProductWay::kAvx2}) {
    INFO(name_of(way));
    CHECK_FALSE(can_multiply_by<BF16>(way));
    CHECK_FALSE(can_multiply_by<float>(way));
  }
  CHECK(can_multiply_by<BF16>(ProductWay::kLibTorch));
  limit_instruction_set(InstructionSet::kAmx);
}

}  // namespace farstep
