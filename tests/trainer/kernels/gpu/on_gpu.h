// What the tests of a GPU's kernels begin with: values in its memory, and values to compare with.
//
// The tests run on a GPU where there is one, and on one that the CPU emulates everywhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/trainer/kernels/random_values.h"
#include "trainer/cuda/device_array.h"
#include "trainer/kernels/numbers/fp8.h"

namespace farstep {

template <typename T>
DeviceArray<T> on_gpu(const std::vector<T>& values) {
  return DeviceArray<T>(std::span<const T>(values));
}

// A launch that CUDA takes.
inline void require(cudaError_t error) {
  REQUIRE(error == cudaSuccess);
}

template <typename T>
std::vector<double> exact(const std::vector<T>& values) {
  std::vector<double> result;
  for (const T value : values) result.push_back(to_float(value));
  return result;
}

// What kernels leave as the largest magnitude.
inline uint32_t largest_of(const std::vector<BF16>& values) {
  return largest_magnitude_bits(values.data(), std::ssize(values));
}

template <typename T>
bool equal_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// How many values are farther from the wanted ones than another order of operations takes them: by
// more than one unit in the last place of bf16, and by more than `slack` times the largest of the
// wanted ones, or times `least` where that is larger. All of them if there are more or fewer.
inline std::size_t far_values(const std::vector<BF16>& found, const std::vector<BF16>& wanted,
                              double slack = 1e-5, double least = 0) {
  if (found.size() != wanted.size()) return std::max(found.size(), wanted.size());
  double largest = least;
  for (const double value : exact(wanted)) largest = std::max(largest, std::fabs(value));
  std::size_t far = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double a = to_float(found[i]), b = to_float(wanted[i]);
    constexpr int kFractionBits = 7;
    const double unit =
        std::ldexp(1.0, std::ilogb(std::max(std::fabs(a), std::fabs(b))) - kFractionBits);
    const double allowed = std::max(a == 0 && b == 0 ? 0 : unit, slack * largest);
    if (!(std::fabs(a - b) <= allowed)) ++far;
  }
  return far;
}

}  // namespace farstep
