#include "trainer/kernels/products/panel_product.h"

#include <array>
#include <cmath>
#include <memory>

#include "tests/support/catch.h"
#include "tests/support/skip_instructions.h"
#include "tests/trainer/kernels/products/plain_panels.h"
#include "tests/trainer/kernels/products/stored_factor.h"

namespace farstep {

namespace {

// A table of kernels with its types: factors of T, panels of P.
template <typename T, typename P, const PanelKernels<T, P>* (*kKernels)()>
struct Panels {
  using Value = T;
  static const PanelKernels<T, P>* kernels() { return kKernels(); }
  static void multiply(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b,
                       const Product& c) {
    multiply_panels(*kKernels(), m, n, k, a, b, c);
  }
};

using Plain = Panels<BF16, BF16, plain_panels>;
using Amx = Panels<BF16, BF16, amx_panels>;
using Avx512Bf16 = Panels<BF16, BF16, avx512_bf16_panels>;
using Avx512FromBf16 = Panels<BF16, float, avx512_panels<BF16>>;
using Avx512 = Panels<float, float, avx512_panels<float>>;
using Avx2FromBf16 = Panels<BF16, float, avx2_panels<BF16>>;
using Avx2 = Panels<float, float, avx2_panels<float>>;

// Skips the test where the compiler or the processor has no such instructions.
template <typename Way>
bool is_missing() {
  const auto* kernels = Way::kernels();
  if (kernels != nullptr && has_instructions(kernels->instructions)) return false;
  if (kernels == nullptr) {
    skip_test("this compiler has no such instructions");
  } else {
    skip_for_lack_of(kernels->instructions);
  }
  return true;
}

// Checks a product of every layout, also added to what was there.
template <typename Way>
void check_product(int64_t m, int64_t n, int64_t k) {
  using T = typename Way::Value;
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      INFO(m << " x " << n << " x " << k << (a_transposed ? ", a transposed" : "")
             << (b_transposed ? ", b transposed" : ""));
      Stored<T> a(m, k, a_transposed), b(k, n, b_transposed);
      const auto exact = exact_product(a, b, m, n, k);
      for (const bool past_cache : {false, true}) {
        Made c(m, n, /*gap=*/2);
        Way::multiply(m, n, k, a.factor(), b.factor(),
                      {c.values.data(), c.stride, false, past_cache});
        CHECK(relative_error(c.inside(), exact) < 1e-5);
        auto twice = exact;
        for (auto& value : twice) value *= 2;
        Way::multiply(m, n, k, a.factor(), b.factor(),
                      {c.values.data(), c.stride, true, past_cache});
        CHECK(relative_error(c.inside(), twice) < 1e-5);
        CHECK(c.is_untouched_beside());
      }
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("products of panels are those of fp64 at every size and layout", "", Plain, Amx,
                   Avx512Bf16, Avx512FromBf16, Avx512, Avx2FromBf16, Avx2) {
  if (is_missing<TestType>()) return;
  const auto [m, n, k] = GENERATE(table<int64_t, int64_t, int64_t>({{1, 1, 1},
                                                                    {3, 5, 7},
                                                                    {32, 32, 32},
                                                                    {32, 48, 32},
                                                                    {33, 31, 33},
                                                                    {64, 100, 65},
                                                                    {17, 300, 2},
                                                                    {300, 17, 40},
                                                                    {40, 20, 1408},
                                                                    {35, 37, 1409},
                                                                    {20, 40, 3000}}));
  check_product<TestType>(m, n, k);
}

// The plain kernels have several blocks at the sizes above, and are slow.
TEMPLATE_TEST_CASE("products of several blocks are those of fp64", "", Amx, Avx512Bf16,
                   Avx512FromBf16, Avx512, Avx2FromBf16, Avx2) {
  if (is_missing<TestType>()) return;
  const auto [m, n, k] =
      GENERATE(table<int64_t, int64_t, int64_t>({{33, 1100, 512}, {1100, 33, 512}}));
  check_product<TestType>(m, n, k);
}

TEMPLATE_TEST_CASE("a product whose lines are whole goes past the caches", "", Plain, Amx,
                   Avx512Bf16, Avx512FromBf16, Avx512, Avx2FromBf16, Avx2) {
  if (is_missing<TestType>()) return;
  using T = typename TestType::Value;
  constexpr int64_t kRows = 96, kColumns = 96, kInner = 40;
  Stored<T> a(kRows, kInner, true), b(kInner, kColumns, false);
  struct alignas(64) Line {
    float values[16];
  };
  const auto memory = std::make_unique<std::array<Line, kRows * kColumns / 16>>();
  float* const c = memory->front().values;
  TestType::multiply(kRows, kColumns, kInner, a.factor(), b.factor(),
                     {c, kColumns, false, /*past_cache=*/true});
  CHECK(relative_error(std::vector<float>(c, c + kRows * kColumns),
                       exact_product(a, b, kRows, kColumns, kInner)) < 1e-5);
}

TEMPLATE_TEST_CASE("a product of panels in parts has the bits of the whole", "", Plain, Amx,
                   Avx512Bf16, Avx512FromBf16, Avx512, Avx2FromBf16, Avx2) {
  if (is_missing<TestType>()) return;
  using T = typename TestType::Value;
  constexpr int64_t kRows = 70, kColumns = 90, kInner = 2000;
  for (const bool transposed : {false, true}) {
    Stored<T> a(kRows, kInner, transposed), b(kInner, kColumns, transposed);
    Made whole(kRows, kColumns, 0), parts(kRows, kColumns, 0);
    TestType::multiply(kRows, kColumns, kInner, a.factor(), b.factor(),
                       {whole.values.data(), kColumns});
    constexpr std::array<int64_t, 4> kRowCuts{0, 32, 33, kRows}, kColumnCuts{0, 5, 64, kColumns};
    for (std::size_t i = 0; i + 1 < kRowCuts.size(); ++i) {
      for (std::size_t j = 0; j + 1 < kColumnCuts.size(); ++j) {
        const int64_t row = kRowCuts[i], column = kColumnCuts[j];
        TestType::multiply(
            kRowCuts[i + 1] - row, kColumnCuts[j + 1] - column, kInner,
            {a.values.data() + row * (transposed ? 1 : a.stride), a.stride, transposed},
            {b.values.data() + column * (transposed ? b.stride : 1), b.stride, transposed},
            {parts.values.data() + row * kColumns + column, kColumns});
      }
    }
    CHECK(parts.values == whole.values);
  }
}

TEMPLATE_TEST_CASE("infinite values and NaN go to their own results alone", "", Plain, Amx,
                   Avx512Bf16, Avx512FromBf16, Avx512, Avx2FromBf16, Avx2) {
  if (is_missing<TestType>()) return;
  using T = typename TestType::Value;
  constexpr int64_t kSize = 40;
  Stored<T> a(kSize, kSize, false), b(kSize, kSize, false);
  a.at_line(3, 39) = rounded<T>(INFINITY);
  a.at_line(36, 0) = rounded<T>(NAN);
  Made c(kSize, kSize, 0);
  TestType::multiply(kSize, kSize, kSize, a.factor(), b.factor(), {c.values.data(), kSize});
  for (int64_t row = 0; row < kSize; ++row) {
    for (int64_t column = 0; column < kSize; ++column) {
      const float value = c.values[static_cast<std::size_t>(row * kSize + column)];
      CHECK(std::isfinite(value) == (row != 3 && row != 36));
    }
  }
}

}  // namespace farstep
