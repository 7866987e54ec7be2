// Helpers for vectorised kernels: an exponential without branches or calls, and prefetching.
//
// For the sources of kernels only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace farstep {

// Returns e^x within a relative error of 2e-7 for x in [-87, 87]; NaN for NaN. Splits x into a
// multiple of ln 2, which gives the exponent bits, and a rest, whose exponential is a polynomial.
inline float vector_exp_in_range(float in_range) {
  // Adding it rounds a small number to an integer and puts that, plus 127, into the lowest bits.
  constexpr float kShift = 0x1.8p23F + 127;
  const float shifted = in_range * 0x1.715476p0F + kShift;
  const float power = shifted - kShift;
  // ln 2 in two parts; the product of the first part and `power` is exact.
  const float rest = in_range - power * 0x1.63p-1F + power * 0x1.bd0106p-13F;
  // Within 9.2e-8 of e^rest: the best polynomial of this degree with the value 1 at 0.
  float sum = 8.29030734e-3F;
  sum = sum * rest + 4.18979750e-2F;
  sum = sum * rest + 1.66676366e-1F;
  sum = sum * rest + 4.99991492e-1F;
  sum = sum * rest + 9.99999707e-1F;
  sum = sum * rest + 1.0F;
  return sum * std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
}

// Does the same for any x; limits x to the range first.
inline float vector_exp(float x) {
  // The operands are in this order so that a NaN passes through.
  const float not_below = -87.0F > x ? -87.0F : x;
  return vector_exp_in_range(87.0F < not_below ? 87.0F : not_below);
}

// Does the same for x <= 0, up to rounding, with one comparison less.
inline float vector_exp_of_negative(float x) {
  return vector_exp_in_range(-87.0F > x ? -87.0F : x);
}

// Returns 1 / (1 + e^-x), and for a NaN a value between 0 and 1.
inline float vector_sigmoid(float x) {
  // Compares as integers: AVX2 needs three times as many instructions to compare and select floats.
  constexpr auto kMost = std::bit_cast<int32_t>(87.0F);
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t magnitude = std::min(bits & 0x7fffffff, kMost);
  const float in_range = std::bit_cast<float>(magnitude | (bits & INT32_MIN));
  return 1.0F / (1.0F + vector_exp_in_range(-in_range));
}

// Fetches `size` values at x into the cache; x may point beyond an array. For data that a kernel
// reads next where the processor's own prefetcher is too late.
template <typename T>
inline void prefetch(const T* x, int64_t size) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < size; i += kLine) __builtin_prefetch(x + i);
}

}  // namespace farstep
