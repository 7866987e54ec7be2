// What kernels need to become vector code: several instruction sets, an exponential that loops can
// take in, and memory that is asked for in time.
//
// For the sources of kernels only.
#pragma once

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
  // Compared in this order, a NaN passes.
  const float not_below = -87.0F > x ? -87.0F : x;
  const float in_range = 87.0F < not_below ? 87.0F : not_below;
  // Added to a small number, it leaves the nearest integer, plus 127, in the lowest bits.
  constexpr float kShift = 0x1.8p23F + 127;
  const float shifted = in_range * 0x1.715476p0F + kShift;
  const float power = shifted - kShift;
  // ln 2 in two parts, of which the first times `power` is exact.
  const float rest = in_range - power * 0x1.63p-1F + power * 0x1.bd0106p-13F;
  // Within 9.2e-8 of e^rest, as near as a polynomial of this degree that is 1 at 0 can be.
  float sum = 8.29030734e-3F;
  sum = sum * rest + 4.18979750e-2F;
  sum = sum * rest + 1.66676366e-1F;
  sum = sum * rest + 4.99991492e-1F;
  sum = sum * rest + 9.99999707e-1F;
  sum = sum * rest + 1.0F;
  return sum * std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
}

// Asks for `size` values at x, which need not exist, to come into the cache: what a kernel reads
// next, where the processor's own guess of it falls behind.
template <typename T>
inline void prefetch(const T* x, int64_t size) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < size; i += kLine) __builtin_prefetch(x + i);
}

}  // namespace farstep
