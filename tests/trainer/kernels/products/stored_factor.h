// Factors of products in memory with gaps, what a product leaves, and its fp64 reference.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/trainer/kernels/random_values.h"
#include "trainer/kernels/factor.h"

namespace farstep {

// A matrix (rows, columns) as a factor, whose rows lie 3 values further apart than they must; the
// values between them are NaN.
template <typename T>
struct Stored {
  Stored(int64_t rows, int64_t columns, bool transposed)
      : stride((transposed ? rows : columns) + 3), is_transposed(transposed) {
    const int64_t lines = transposed ? columns : rows;
    values = as<T>(random_values(lines * stride));
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t i = stride - 3; i < stride; ++i) at_line(line, i) = rounded<T>(NAN);
    }
  }

  T& at_line(int64_t line, int64_t i) {
    return values[static_cast<std::size_t>(line * stride + i)];
  }
  double at(int64_t row, int64_t column) {
    return to_float(is_transposed ? at_line(column, row) : at_line(row, column));
  }
  Factor<T> factor() const { return {values.data(), stride, is_transposed}; }

  int64_t stride;
  bool is_transposed;
  std::vector<T> values;
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

template <typename T>
std::vector<double> exact_product(Stored<T>& a, Stored<T>& b, int64_t m, int64_t n, int64_t k) {
  // Pointers, as tests compile without optimization for sanitizers.
  std::vector<double> factor_b(static_cast<std::size_t>(k * n));
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t column = 0; column < n; ++column) factor_b[i * n + column] = b.at(i, column);
  }
  std::vector<double> product(static_cast<std::size_t>(m * n));
  for (int64_t row = 0; row < m; ++row) {
    double* const sums = product.data() + row * n;
    for (int64_t i = 0; i < k; ++i) {
      const double value = a.at(row, i);
      const double* const values = factor_b.data() + i * n;
      for (int64_t column = 0; column < n; ++column) sums[column] += value * values[column];
    }
  }
  return product;
}

}  // namespace farstep
