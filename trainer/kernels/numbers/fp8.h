// FP8: the two formats of Micikevicius et al. 2022 ("FP8 formats for deep learning"), and scales
// that fit values into them; for processors and GPUs.
//
// E4M3 has 3 bits of mantissa, a largest value of 448 and no infinity. E5M2 has 2 bits and 57344.
// All values of a matrix share one scale, a power of two, so scaling rounds nothing. A bf16 rounded
// to FP8 is therefore a bf16 again, unless the whole matrix is below 2^-100. Pure functions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "trainer/base/processor/host_device.h"
#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

enum class Fp8Format { kE4M3, kE5M2 };

// The parameters of a format.
struct Fp8Traits {
  int mantissa_bits, bias;
  int top_exponent;  // the largest value is 1.75 times two to this
  float largest;
};

template <Fp8Format format>
inline constexpr Fp8Traits kFp8Traits =
    format == Fp8Format::kE4M3 ? Fp8Traits{3, 7, 8, 448.0F} : Fp8Traits{2, 15, 15, 57344.0F};

// The code of NaN in both formats.
inline constexpr uint8_t kFp8Nan = 0x7f;

// Returns 2^exponent for -126 to 127.
FARSTEP_HOST_DEVICE constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(127 + exponent) << 23);
}

// Returns the code of the value nearest to x, ties to even. A value beyond the range becomes the
// largest one. Infinities and NaN become NaN, so that a diverging run stays visible.
template <Fp8Format format>
FARSTEP_HOST_DEVICE inline uint8_t fp8_code(float x) {
  constexpr Fp8Traits kTraits = kFp8Traits<format>;
  constexpr int kShift = 23 - kTraits.mantissa_bits;
  constexpr float kLeastNormal = power_of_two(1 - kTraits.bias);
  // Adding it to a smaller value rounds that to a multiple of the least denormal value.
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

// Returns the value of a code from fp8_code().
template <Fp8Format format>
FARSTEP_HOST_DEVICE inline float fp8_value(uint8_t code) {
  constexpr Fp8Traits kTraits = kFp8Traits<format>;
  const uint32_t magnitude = static_cast<uint32_t>(code & 0x7f) << (23 - kTraits.mantissa_bits);
  const float value = std::bit_cast<float>(magnitude) * power_of_two(127 - kTraits.bias);
  const auto bits = (code & 0x7f) == kFp8Nan ? 0x7fc00000U : std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(bits | static_cast<uint32_t>(code & 0x80) << 24);
}

// The factors that scale values before they become FP8, and back afterwards.
struct Fp8Scale {
  float factor = 1, inverse = 1;
};

// Returns the bits of |x|. They order as the magnitudes do, with NaN last.
FARSTEP_HOST_DEVICE inline uint32_t magnitude_bits(BF16 x) {
  return x.bits & 0x7fff;
}

// Returns the largest power of two (at most 2^126) that keeps a matrix in range. `largest` has the
// bits of its largest magnitude. Returns 1 if that is 0 or not finite.
template <Fp8Format format>
FARSTEP_HOST_DEVICE inline Fp8Scale fp8_scale(uint32_t largest) {
  if (largest == 0 || largest >= 0x7f80) return {};
  const int exponent = static_cast<int>(largest >> 7) - 127;
  const bool above = (largest & 0x7f) > 0x60;  // beyond 1.75, the mantissa of the largest value
  const int power = kFp8Traits<format>.top_exponent - exponent - (above ? 1 : 0);
  const int nearest = std::clamp(power, -126, 126);
  return {power_of_two(nearest), power_of_two(-nearest)};
}

// Returns the bits of the largest magnitude of x (size); 0 if x is empty.
uint32_t largest_magnitude_bits(const BF16* x, int64_t size);

// Writes to y (size), which may be x, the values of x rounded to FP8, as bf16.
void round_to_fp8(Fp8Format format, const BF16* x, int64_t size, uint32_t largest, BF16* y);

}  // namespace farstep
