// A maximum that becomes vector code.
//
// For the sources of kernels only: the pragma needs their compiler options.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace farstep {

// The largest of x (size, above 0); perhaps a NaN if one of them is.
inline float largest_of(const float* x, int64_t size) {
  // As integers that are in the floats' order: loops cannot take in a maximum that may meet a NaN.
  const auto turned = [](int32_t bits) { return bits ^ ((bits >> 31) & 0x7fffffff); };
  int32_t largest = std::numeric_limits<int32_t>::min();
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < size; ++i) {
    largest = std::max(largest, turned(std::bit_cast<int32_t>(x[i])));
  }
  return std::bit_cast<float>(turned(largest));
}

}  // namespace farstep
