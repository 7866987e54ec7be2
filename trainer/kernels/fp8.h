// FP8, the two formats of Micikevicius et al. 2022 ("FP8 formats for deep learning"), and the
// scales by which values fit into them; for processors and GPUs alike.
//
// E4M3 has 3 bits of mantissa, reaches 448 and knows no infinity; E5M2 has 2 and reaches 57344. All
// values of a matrix share a scale, a power of two, so that scaling rounds nothing: what FP8 makes
// of a bf16 is a bf16 again, unless a whole matrix lies below 2^-100. Pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "trainer/base/host_device.h"
#include "trainer/kernels/bf16.h"

namespace farstep {

enum class Fp8Format { kE4M3, kE5M2 };

// What a format is made of.
struct Fp8Traits {
  int mantissa_bits, bias;
  int top_exponent;  // the largest value is 1.75 times two to this
  float largest;
};

template <Fp8Format format>
inline constexpr Fp8Traits kFp8Traits =
    format == Fp8Format::kE4M3 ? Fp8Traits{3, 7, 8, 448.0F} : Fp8Traits{2, 15, 15, 57344.0F};

// A NaN in either format.
inline constexpr uint8_t kFp8Nan = 0x7f;

// 2^exponent, -126 to 127.
FARSTEP_HOST_DEVICE constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(127 + exponent) << 23);
}

// The code of the value nearest to x, ties to even; beyond the format's range that of its largest
// value. Infinities and NaN give a NaN, so that a run that diverges is seen to.
template <Fp8Format format>
FARSTEP_HOST_DEVICE inline uint8_t fp8_code(float x) {
  constexpr Fp8Traits kTraits = kFp8Traits<format>;
  constexpr int kShift = 23 - kTraits.mantissa_bits;
  constexpr float kLeastNormal = power_of_two(1 - kTraits.bias);
  // Added to a smaller value, it leaves that as a multiple of the least denormal one.
  constexpr float kDenormalShift = power_of_two(1 - kTraits.bias + kShift);
  const auto bits = std::bit_cast<uint32_t>(x);
  const float magnitude = std::min(std::bit_cast<float>(bits & 0x7fffffff), kTraits.largest);
  const auto own = std::bit_cast<uint32_t>(magnitude);
  const uint32_t normal = ((own + (1U << (kShift - 1)) - 1 + ((own >> kShift) & 1)) >> kShift) -
                          (static_cast<uint32_t>(127 - kTraits.bias) << kTraits.mantissa_bits);
  const uint32_t denormal =
      std::bit_cast<uint32_t>(magnitude + kDenormalShift) - std::bit_cast<uint32_t>(kDenormalShift);
  const uint32_t code = magnitude < kLeastNormal ? denormal : normal;
  const bool finite = (bits & 0x7fffffff) < 0x7f800000;
  return static_cast<uint8_t>(finite ? code | (bits >> 24 & 0x80) : kFp8Nan);
}

// The value of a code that fp8_code gives.
template <Fp8Format format>
FARSTEP_HOST_DEVICE inline float fp8_value(uint8_t code) {
  constexpr Fp8Traits kTraits = kFp8Traits<format>;
  const uint32_t magnitude = static_cast<uint32_t>(code & 0x7f) << (23 - kTraits.mantissa_bits);
  const float value = std::bit_cast<float>(magnitude) * power_of_two(127 - kTraits.bias);
  const auto bits = (code & 0x7f) == kFp8Nan ? 0x7fc00000U : std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(bits | static_cast<uint32_t>(code & 0x80) << 24);
}

// What values are multiplied by before they become FP8, and after.
struct Fp8Scale {
  float factor = 1, inverse = 1;
};

// The bits of |x|, in the order of the magnitudes, NaN last.
FARSTEP_HOST_DEVICE inline uint32_t magnitude_bits(BF16 x) {
  return x.bits & 0x7fff;
}

// The largest power of two (2^126 at most) by which the largest magnitude of a matrix stays in
// range, from that one's bits; 1 where it is 0 or not finite.
template <Fp8Format format>
FARSTEP_HOST_DEVICE inline Fp8Scale fp8_scale(uint32_t largest) {
  if (largest == 0 || largest >= 0x7f80) return {};
  const int exponent = static_cast<int>(largest >> 7) - 127;
  const bool above = (largest & 0x7f) > 0x60;  // 1.75, as the format's largest value has it
  const int power = kFp8Traits<format>.top_exponent - exponent - (above ? 1 : 0);
  const int nearest = std::clamp(power, -126, 126);
  return {power_of_two(nearest), power_of_two(-nearest)};
}

// The bits of the largest magnitude of x (size); 0 of nothing.
uint32_t largest_magnitude_bits(const BF16* x, int64_t size);

// y (size), which may be x: what FP8 makes of x, back in bf16.
void round_to_fp8(Fp8Format format, const BF16* x, int64_t size, uint32_t largest, BF16* y);

}  // namespace farstep
