// bf16, the upper half of an fp32, and its conversions. They use integer operations only, so that
// the compiler can vectorise loops over them.
//
// Kernels are templates of the activations' type, `float` or `BF16`. Pure functions.
#pragma once

#include <bit>
#include <cstdint>

#include "trainer/base/processor/host_device.h"

namespace farstep {

struct BF16 {
  uint16_t bits;
};

FARSTEP_HOST_DEVICE inline float to_float(BF16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}
FARSTEP_HOST_DEVICE inline float to_float(float x) {
  return x;
}

// Returns `x` as a T: rounded to nearest, ties to even; a NaN stays a NaN.
template <typename T>
FARSTEP_HOST_DEVICE T rounded(float x);

template <>
FARSTEP_HOST_DEVICE inline BF16 rounded<BF16>(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t nearest = bits + 0x7fff + ((bits >> 16) & 1);
  const uint32_t all_ones_if_nan = x != x ? 0xffffffff : 0;
  return {static_cast<uint16_t>((nearest | all_ones_if_nan) >> 16)};
}
template <>
FARSTEP_HOST_DEVICE inline float rounded<float>(float x) {
  return x;
}

}  // namespace farstep
