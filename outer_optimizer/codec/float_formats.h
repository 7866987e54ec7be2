// The arithmetic of float_codecs.h, value by value. It uses integers and fp32 additions that round
// to nearest, so the bits are the same everywhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>

namespace farstep::outer_optimizer {

struct Fp16Format {
  static constexpr std::string_view kName = "fp16";
  static constexpr float kLargest = 65504;

  // Returns the value's 16 bits.
  static uint16_t shorten(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & ~kSignBit;
    const uint32_t finite = std::min(magnitude, std::bit_cast<uint32_t>(kLargest));
    const uint32_t exponent = finite < kLeastExponent ? kLeastExponent : finite & kExponentBits;
    // The sum with 2^13 times the value's power of two has the 11 remaining bits, rounded, as its
    // last ones.
    const uint32_t shift = exponent + (13 << 23);
    const float shifted = std::bit_cast<float>(finite) + std::bit_cast<float>(shift);
    const uint32_t digits = std::bit_cast<uint32_t>(shifted) - shift;
    const uint32_t shortened = ((exponent - kLeastExponent) >> 13) + digits;
    // Infinity's code is one above the largest number's, which stands in for it here; NaN's is
    // higher.
    const uint32_t special = magnitude > kExponentBits ? 0x201 : magnitude == kExponentBits ? 1 : 0;
    return static_cast<uint16_t>((shortened + special) | ((bits & kSignBit) >> 16));
  }

  // Returns the value of 16 bits.
  static float lengthen(uint16_t half) {
    const int32_t exponent = std::max(half & 0x7c00, 0x400);
    const int32_t digits = (half & 0x7fff) - (exponent - 0x400);
    const float unit = std::bit_cast<float>((exponent << 13) + ((127 - 15 - 10) << 23));
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(digits) * unit);
    const uint32_t special = exponent == 0x7c00 ? kExponentBits : 0;
    return std::bit_cast<float>(bits | special | ((half & 0x8000U) << 16));
  }

 private:
  static constexpr uint32_t kSignBit = 0x80000000;
  static constexpr uint32_t kExponentBits = 0x7f800000;   // infinity; larger magnitudes are NaN
  static constexpr uint32_t kLeastExponent = 0x38800000;  // 2^-14
};

struct Bf16Format {
  static constexpr std::string_view kName = "bf16";
  static constexpr float kLargest = std::numeric_limits<float>::max();  // within its error

  // Returns the value's 16 bits.
  static uint16_t shorten(float value) {
    constexpr uint32_t kSignBit = 0x80000000;
    constexpr uint32_t kInfinity = 0x7f800000;
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & ~kSignBit;
    const uint32_t even = (magnitude >> 16) & 1;
    const uint32_t rounded = std::min(magnitude + 0x7fff + even, kInfinity - 1);
    const uint32_t special = magnitude > kInfinity ? 0x7fc00000 : kInfinity;
    const uint32_t shortened = magnitude < kInfinity ? rounded : special;
    return static_cast<uint16_t>((shortened | (bits & kSignBit)) >> 16);
  }

  // Returns the value of 16 bits.
  static float lengthen(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }
};

}  // namespace farstep::outer_optimizer
