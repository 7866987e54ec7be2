// bf16, the upper half of an fp32, and its conversions; all by integer operations, so that loops
// over them become vector code.
//
// Kernels are written once for activations of type `float` and of type `BF16`. Pure functions.
#pragma once

#include <bit>
#include <cstdint>

#include "trainer/base/host_device.h"

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

// `x` as a T: rounded to the nearest, ties to even; a NaN stays one.
template <typename T>
FARSTEP_HOST_DEVICE T rounded(float x);

template <>
FARSTEP_HOST_DEVICE inline BF16 rounded<BF16>(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return {static_cast<uint16_t>(x != x ? 0x7fc0 : nearest)};
}
template <>
FARSTEP_HOST_DEVICE inline float rounded<float>(float x) {
  return x;
}

}  // namespace farstep
