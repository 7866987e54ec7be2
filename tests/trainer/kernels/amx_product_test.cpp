#include "trainer/kernels/amx_product.h"

#include <array>
#include <cmath>

#include "tests/support/amx.h"
#include "tests/support/catch.h"
#include "tests/trainer/kernels/random_values.h"

namespace farstep {

namespace {

// A matrix (rows, columns) as a factor, whose rows lie 3 values further apart than they must; the
// values between them are NaN.
struct Stored {
  Stored(int64_t rows, int64_t columns, bool transposed)
      : stride((transposed ? rows : columns) + 3), is_transposed(transposed) {
    const int64_t lines = transposed ? columns : rows;
    values = as<BF16>(random_values(lines * stride));
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t i = stride - 3; i < stride; ++i) at_line(line, i) = rounded<BF16>(NAN);
    }
  }

  BF16& at_line(int64_t line, int64_t i) {
    return values[static_cast<std::size_t>(line * stride + i)];
  }
  double at(int64_t row, int64_t column) {
    return to_float(is_transposed ? at_line(column, row) : at_line(row, column));
  }
  Factor<BF16> factor() const { return {values.data(), stride, is_transposed}; }

  int64_t stride;
  bool is_transposed;
  std::vector<BF16> values;
};

// What a product leaves where it is to leave nothing.
constexpr float kUntouched = -77;

struct Made {
  Made(int64_t rows, int64_t columns, int64_t gap)
      : m(rows),
        n(columns),
        stride(columns + gap),
        values(static_cast<std::size_t>(rows * stride), kUntouched) {}

  std::vector<float> inside() const {
    std::vector<float> result;
    for (int64_t row = 0; row < m; ++row) {
      const auto first = values.begin() + row * stride;
      result.insert(result.end(), first, first + n);
    }
    return result;
  }
  bool is_untouched_beside() const {
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t i = n; i < stride; ++i) {
        if (values[static_cast<std::size_t>(row * stride + i)] != kUntouched) return false;
      }
    }
    return true;
  }

  int64_t m, n, stride;
  std::vector<float> values;
};

std::vector<double> exact_product(Stored& a, Stored& b, int64_t m, int64_t n, int64_t k) {
  std::vector<double> product;
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += a.at(row, i) * b.at(i, column);
      product.push_back(sum);
    }
  }
  return product;
}

}  // namespace

TEST_CASE("products by AMX are those of fp64 at every size and layout") {
  if (lacks_amx()) return;
  const auto [m, n, k] = GENERATE(table<int64_t, int64_t, int64_t>({{1, 1, 1},
                                                                    {3, 5, 7},
                                                                    {32, 32, 32},
                                                                    {33, 31, 33},
                                                                    {64, 100, 65},
                                                                    {17, 300, 2},
                                                                    {300, 17, 40},
                                                                    {40, 20, 1408},
                                                                    {35, 37, 1409},
                                                                    {20, 40, 3000},
                                                                    {40, 1300, 512},
                                                                    {1100, 40, 512}}));
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const bool past_cache : {false, true}) {
        INFO(m << " x " << n << " x " << k << (a_transposed ? ", a transposed" : "")
               << (b_transposed ? ", b transposed" : ""));
        Stored a(m, k, a_transposed), b(k, n, b_transposed);
        const auto exact = exact_product(a, b, m, n, k);
        Made c(m, n, /*gap=*/2);
        amx_multiply(m, n, k, a.factor(), b.factor(),
                     {c.values.data(), c.stride, false, past_cache});
        CHECK(relative_error(c.inside(), exact) < 1e-5);
        auto twice = exact;
        for (auto& value : twice) value *= 2;
        amx_multiply(m, n, k, a.factor(), b.factor(),
                     {c.values.data(), c.stride, true, past_cache});
        CHECK(relative_error(c.inside(), twice) < 1e-5);
        CHECK(c.is_untouched_beside());
      }
    }
  }
}

TEST_CASE("a product by AMX in parts has the bits of the whole") {
  if (lacks_amx()) return;
  constexpr int64_t kRows = 70, kColumns = 90, kInner = 2000;
  for (const bool transposed : {false, true}) {
    Stored a(kRows, kInner, transposed), b(kInner, kColumns, transposed);
    Made whole(kRows, kColumns, 0), parts(kRows, kColumns, 0);
    amx_multiply(kRows, kColumns, kInner, a.factor(), b.factor(), {whole.values.data(), kColumns});
    constexpr std::array<int64_t, 4> kRowCuts{0, 32, 33, kRows}, kColumnCuts{0, 5, 64, kColumns};
    for (std::size_t i = 0; i + 1 < kRowCuts.size(); ++i) {
      for (std::size_t j = 0; j + 1 < kColumnCuts.size(); ++j) {
        const int64_t row = kRowCuts[i], column = kColumnCuts[j];
        amx_multiply(kRowCuts[i + 1] - row, kColumnCuts[j + 1] - column, kInner,
                     {a.values.data() + row * (transposed ? 1 : a.stride), a.stride, transposed},
                     {b.values.data() + column * (transposed ? b.stride : 1), b.stride, transposed},
                     {parts.values.data() + row * kColumns + column, kColumns});
      }
    }
    CHECK(parts.values == whole.values);
  }
}

TEST_CASE("infinite values and NaN go through a product by AMX to their own results alone") {
  if (lacks_amx()) return;
  constexpr int64_t kSize = 40;
  Stored a(kSize, kSize, false), b(kSize, kSize, false);
  a.at_line(3, 39) = rounded<BF16>(INFINITY);
  a.at_line(36, 0) = rounded<BF16>(NAN);
  Made c(kSize, kSize, 0);
  amx_multiply(kSize, kSize, kSize, a.factor(), b.factor(), {c.values.data(), kSize});
  for (int64_t row = 0; row < kSize; ++row) {
    for (int64_t column = 0; column < kSize; ++column) {
      const float value = c.values[static_cast<std::size_t>(row * kSize + column)];
      CHECK(std::isfinite(value) == (row != 3 && row != 36));
    }
  }
}

}  // namespace farstep
