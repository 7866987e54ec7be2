// What kernels need to become vector code: several instruction sets, and an exponential that loops
// can take in.
//
// For the sources of kernels only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

// Before a function: it is compiled for several instruction sets, and the loader takes the best one
// that the processor has. What it calls must be inline to be compiled with it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FARSTEP_VECTOR_CODE \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define FARSTEP_VECTOR_CODE
#endif

namespace farstep {

// e^x within 2e-7 of it for x in [-87, 87]; beyond, that of the nearer end. A NaN stays one.
inline float vector_exp(float x) {
  // In integers, as compilers make comparisons of floats into work on denormal constants, which is
  // slow.
  constexpr int32_t kInfinity = 0x7f800000;
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t magnitude = bits & 0x7fffffff;
  const int32_t nearest = std::min(magnitude, std::bit_cast<int32_t>(87.0F));
  const int32_t nan = magnitude > kInfinity ? -1 : 0;
  const auto in_range = std::bit_cast<float>((bits ^ magnitude) | nearest | nan);
  // Added to a small number, it leaves the nearest integer in the lowest bits.
  constexpr float kShift = 0x1.8p23F;
  const float shifted = in_range * 0x1.715476p0F + kShift;
  const float power = shifted - kShift;
  // ln 2 in two parts, of which the first times `power` is exact.
  const float rest = in_range - power * 0x1.63p-1F + power * 0x1.bd0106p-13F;
  float sum = 1.9875691500e-4F;
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  sum = sum * rest * rest + rest + 1.0F;
  const uint32_t exponent = (std::bit_cast<uint32_t>(shifted) << 23) + (127U << 23);
  return sum * std::bit_cast<float>(exponent);
}

}  // namespace farstep
