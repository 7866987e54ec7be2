// What the tests of a GPU's kernels begin with: values in its memory, and values to compare with.
//
// The tests run on a GPU where there is one, and on one that the CPU plays everywhere.
#pragma once

#include <span>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/trainer/kernels/random_values.h"
#include "trainer/cuda/device_array.h"

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

template <typename T>
bool equal_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace farstep
