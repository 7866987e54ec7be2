#include "outer_optimizer/codec/float_codecs.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace farstep {

namespace {

constexpr uint32_t kSignBit = 0x80000000;
constexpr uint32_t kExponentBits = 0x7f800000;  // infinity; larger magnitudes are NaN

}  // namespace

struct Fp16Format {
  static constexpr std::string_view kName = "fp16";
  static constexpr uint32_t kLargest = std::bit_cast<uint32_t>(65504.0F);
  static constexpr uint32_t kLeastExponent = std::bit_cast<uint32_t>(0x1p-14F);

  static uint16_t shorten(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & ~kSignBit;
    const uint32_t finite = std::min(magnitude, kLargest);
    const uint32_t exponent = std::max(finite & kExponentBits, kLeastExponent);
    // Adding 2^13 times the exponent's power leaves the 11 bits that stay, rounded, as the last
    // ones.
    const uint32_t shift = exponent + (13 << 23);
    const float shifted = std::bit_cast<float>(finite) + std::bit_cast<float>(shift);
    const uint32_t digits = std::bit_cast<uint32_t>(shifted) - shift;
    const uint32_t shortened = ((exponent - kLeastExponent) >> 13) + digits;
    // Infinity is one above the largest number, which stands in for it here; NaN is above that.
    const uint32_t special = magnitude > kExponentBits ? 0x201 : magnitude == kExponentBits ? 1 : 0;
    return static_cast<uint16_t>((shortened + special) | ((bits & kSignBit) >> 16));
  }

  static float lengthen(uint16_t half) {
    const int32_t exponent = std::max(half & 0x7c00, 0x400);
    const int32_t digits = (half & 0x7fff) - (exponent - 0x400);
    const float unit = std::bit_cast<float>((exponent << 13) + ((127 - 15 - 10) << 23));
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(digits) * unit);
    const uint32_t special = exponent == 0x7c00 ? kExponentBits : 0;
    return std::bit_cast<float>(bits | special | ((half & 0x8000U) << 16));
  }
};

struct Bf16Format {
  static constexpr std::string_view kName = "bf16";

  static uint16_t shorten(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & ~kSignBit;
    const uint32_t even = (magnitude >> 16) & 1;
    const uint32_t rounded = std::min(magnitude + 0x7fff + even, kExponentBits - 1);
    const uint32_t special = magnitude > kExponentBits ? 0x7fc00000 : kExponentBits;
    const uint32_t shortened = magnitude < kExponentBits ? rounded : special;
    return static_cast<uint16_t>((shortened | (bits & kSignBit)) >> 16);
  }

  static float lengthen(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }
};

namespace {

template <typename Format>
struct Encode {
  static void run(const float* __restrict values, std::byte* __restrict bytes, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      const uint16_t shortened = Format::shorten(values[k]);
      std::memcpy(bytes + 2 * k, &shortened, 2);
    }
  }
};

template <typename Format>
struct Decode {
  static void run(const std::byte* __restrict bytes, float* __restrict values, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      uint16_t shortened = 0;
      std::memcpy(&shortened, bytes + 2 * k, 2);
      values[k] = Format::lengthen(shortened);
    }
  }
};

}  // namespace

template <typename Format>
std::string_view FloatCodec<Format>::name() const {
  return Format::kName;
}

template <typename Format>
void FloatCodec<Format>::encode(std::span<const float> values, std::span<std::byte> bytes) const {
  check_size(bytes.size(), values.size());
  run_kernel<Encode<Format>>(set_, values.data(), bytes.data(), std::ssize(values));
}

template <typename Format>
void FloatCodec<Format>::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  check_size(bytes.size(), values.size());
  run_kernel<Decode<Format>>(set_, bytes.data(), values.data(), std::ssize(values));
}

template class FloatCodec<Fp16Format>;
template class FloatCodec<Bf16Format>;

}  // namespace farstep
