// A maximum that the compiler can vectorise.
//
// For the sources of kernels only: the pragma needs their compiler options.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace farstep {

// Returns the largest of x (size, above 0); may return NaN if one of them is NaN.
inline float largest_of(const float* x, int64_t size) {
  // Compares as integers in the order of the floats: the compiler does not vectorise a maximum of
  // floats, because of NaN.
  const auto turned = [](int32_t bits) { return bits ^ ((bits >> 31) & 0x7fffffff); };
  int32_t largest = std::numeric_limits<int32_t>::min();
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < size; ++i) {
    largest = std::max(largest, turned(std::bit_cast<int32_t>(x[i])));
  }
  return std::bit_cast<float>(turned(largest));
}

}  // namespace farstep
