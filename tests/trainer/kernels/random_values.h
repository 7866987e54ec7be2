// Fresh random values for the tests of kernels, and how far a result is from its fp64 reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// Another sequence every time the program runs; the seed is printed.
inline std::mt19937& test_random() {
  static std::mt19937 random = [] {
    const auto seed = std::random_device{}();
    std::cout << "seed " << seed << "\n";
    return std::mt19937(seed);
  }();
  return random;
}

inline std::vector<float> random_values(int64_t size, double deviation = 1) {
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  std::vector<float> values(static_cast<std::size_t>(size));
  for (auto& value : values) value = normal(test_random());
  return values;
}

inline std::vector<int64_t> random_tokens(int64_t size, int64_t vocabulary) {
  std::uniform_int_distribution<int64_t> uniform(0, vocabulary - 1);
  std::vector<int64_t> tokens(static_cast<std::size_t>(size));
  for (auto& token : tokens) token = uniform(test_random());
  return tokens;
}

template <typename T>
std::vector<T> as(const std::vector<float>& values) {
  std::vector<T> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i] = rounded<T>(values[i]);
  return result;
}

// ||x - wanted|| relative to ||wanted||, or to `least` where that is larger.
template <typename T>
double relative_error(const std::vector<T>& x, const std::vector<double>& wanted,
                      double least = 1e-30) {
  double error = x.size() == wanted.size() ? 0 : HUGE_VAL;
  double norm = 0;
  for (std::size_t i = 0; i < x.size() && i < wanted.size(); ++i) {
    error += std::pow(static_cast<double>(to_float(x[i])) - wanted[i], 2);
    norm += wanted[i] * wanted[i];
  }
  return std::sqrt(error) / std::max(std::sqrt(norm), least);
}

// What a result that is rounded to T once may be wrong by.
template <typename T>
constexpr double kTolerance = sizeof(T) == 4 ? 2e-6 : 4e-3;

}  // namespace farstep
