// The arithmetic of block_codecs.h, block by block, in loops that compilers vectorise.
//
// A sum is added up in kLanes partial sums: term k goes to number k % kLanes, and at the end they
// are added one after another. So every machine gets the same bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace farstep::outer_optimizer {

// The floats of an AVX-512 vector. Another number changes the bytes of int2.
inline constexpr int kLanes = 16;

// Returns the sum of the floats term(k) for every k < n, in the order above.
template <typename Term>
float sum_in_lanes(int64_t n, const Term& term) {
  float lanes[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(k + lane);
  }
  for (int64_t lane = 0; k + lane < n; ++lane) lanes[lane] += term(k + lane);
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

// Returns the largest |x|, or NaN if a value is not finite. Compares bits, because a comparison of
// floats ignores NaN.
inline float largest_magnitude(const float* values, int64_t n) {
  int32_t largest = 0;
  for (int64_t k = 0; k < n; ++k) {
    largest = std::max(largest, std::bit_cast<int32_t>(values[k]) & 0x7fffffff);
  }
  return std::bit_cast<float>(largest < 0x7f800000 ? largest : 0x7fc00000);
}

// Rounds a scale, half to even, to its highest `bytes` of four bytes; only these are sent.
template <int64_t bytes>
constexpr float rounded_scale(float scale) {
  constexpr int kDropped = 32 - 8 * static_cast<int>(bytes);
  if constexpr (kDropped == 0) return scale;
  const auto bits = std::bit_cast<uint32_t>(scale);
  const uint32_t half = (1U << kDropped) / 2;
  return std::bit_cast<float>((bits + half - 1 + (bits >> kDropped & 1)) >> kDropped << kDropped);
}

// Returns the largest scale of `bytes` bytes whose product with `levels` is finite.
template <int levels, int64_t bytes>
constexpr float largest_scale() {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr uint32_t kStep = 1U << (32 - 8 * bytes);
  const float scale = rounded_scale<bytes>(kMost / static_cast<float>(levels));
  const bool overflows = double{scale} * levels > double{kMost};
  return overflows ? std::bit_cast<float>(std::bit_cast<uint32_t>(scale) - kStep) : scale;
}

// Returns `scale` rounded to `bytes` bytes; 0 if it is too small; the largest one if it is too
// large. Every NaN becomes the same bits on all machines.
template <int levels, int64_t bytes>
float bounded_scale(float scale) {
  constexpr float kLargest = largest_scale<levels, bytes>();
  constexpr float kLeast = std::numeric_limits<float>::min();
  if (scale != scale) return std::bit_cast<float>(0x7fc00000);
  if (scale < kLeast) return 0;
  scale = rounded_scale<bytes>(scale);
  return scale > kLargest ? kLargest : scale;
}

// A format is constructed from a block. It has the scale, of which kScaleBytes are sent; `code`
// returns the code of a value in the lowest kBits bits; `value` maps a sign-extended code to the
// factor of the scale.
template <int bits, int64_t scale_bytes>
struct EqualSteps {
  static constexpr int kBits = bits;
  static constexpr int64_t kScaleBytes = scale_bytes;
  static constexpr int kLevels = (1 << (bits - 1)) - 1;
  float scale;

  EqualSteps(const float* values, int64_t n)
      : scale(bounded_scale<kLevels, kScaleBytes>(largest_magnitude(values, n) / kLevels)) {}
  // Adding 1.5 * 2^23 rounds to an integer, half to even, and puts it into the lowest bits.
  uint32_t code(float x) const { return std::bit_cast<uint32_t>(x / scale + 0x1.8p23F); }
  static float value(int32_t code) { return static_cast<float>(code); }
};

struct Int8Format : EqualSteps<8, 4> {
  static constexpr std::string_view kName = "int8";
  static constexpr int64_t kDefaultBlock = 256;  // its scale adds 1.6 % to the bytes
  using EqualSteps::EqualSteps;
};

struct Int4Format : EqualSteps<4, 2> {
  static constexpr std::string_view kName = "int4";
  static constexpr int64_t kDefaultBlock = 160;  // larger blocks cost loss (docs/results/codecs.md)
  using EqualSteps::EqualSteps;
};

struct Int2Format {
  static constexpr std::string_view kName = "int2";
  // Its scale adds 6.3 % to the bytes. At H 500 they are 7,529 times fewer than those of fp32
  // gradients in every step.
  static constexpr int64_t kDefaultBlock = 128;
  static constexpr int kBits = 2;
  static constexpr int64_t kScaleBytes = 2;
  float scale;
  float unit;         // about the largest magnitude; keeps squares in range
  float mean_square;  // in units of unit^2

  Int2Format(const float* values, int64_t n)
      : scale(bounded_scale<3, kScaleBytes>(largest_magnitude(values, n))),
        unit(scale),
        mean_square(0) {
    if (!(scale > 0)) return;  // zeros, or values that are not finite
    const auto square = [=, this](int64_t k) { return (values[k] / unit) * (values[k] / unit); };
    mean_square = sum_in_lanes(n, square) / static_cast<float>(n);
    const auto dot = [=, this](int64_t k) {
      const float magnitude =
          std::bit_cast<float>(std::bit_cast<uint32_t>(values[k] / unit) & 0x7fffffff);
      return magnitude * (is_large(values[k]) ? 3.0F : 1.0F);
    };
    const auto norm = [=, this](int64_t k) { return is_large(values[k]) ? 9.0F : 1.0F; };
    scale = bounded_scale<3, kScaleBytes>(unit * (sum_in_lanes(n, dot) / sum_in_lanes(n, norm)));
  }
  bool is_large(float x) const { return (x / unit) * (x / unit) > mean_square; }
  uint32_t code(float x) const {
    const int32_t all_ones_if_negative = std::bit_cast<int32_t>(x) >> 31;
    return (is_large(x) ? 1U : 0U) ^ static_cast<uint32_t>(all_ones_if_negative);
  }
  static float value(int32_t code) { return static_cast<float>(2 * code + 1); }
};

template <typename Format>
inline constexpr int64_t kPerByte = 8 / Format::kBits;

// Returns the bytes of the codes of n values.
template <typename Format>
int64_t code_bytes(int64_t n) {
  return (n + kPerByte<Format> - 1) / kPerByte<Format>;
}

// Returns the byte with the codes of up to kPerByte values.
template <typename Format>
std::byte pack(const Format& format, const float* values, int64_t count) {
  uint32_t byte = 0;
  for (int64_t k = 0; k < count; ++k) {
    const uint32_t code = format.code(values[k]) & ((1U << Format::kBits) - 1);
    byte |= code << (k * Format::kBits);
  }
  return static_cast<std::byte>(byte);
}

// Returns the value of code k of a byte.
template <typename Format>
float unpack(std::byte byte, int64_t k, float scale) {
  const auto shifted = static_cast<uint32_t>(byte) << (32 - (k + 1) * Format::kBits);
  return Format::value(static_cast<int32_t>(shifted) >> (32 - Format::kBits)) * scale;
}

// Encodes a block of n values.
template <typename Format>
void encode_block(const float* __restrict values, std::byte* __restrict bytes, int64_t n) {
  const Format format(values, n);
  constexpr int64_t kDropped = sizeof(float) - Format::kScaleBytes;
  const auto scale = std::bit_cast<uint32_t>(format.scale);
  for (int64_t k = 0; k < Format::kScaleBytes; ++k) {
    bytes[k] = static_cast<std::byte>(scale >> (8 * (kDropped + k)));
  }
  std::byte* __restrict codes = bytes + Format::kScaleBytes;
  if (!(format.scale > 0)) {
    std::fill_n(codes, code_bytes<Format>(n), std::byte{0});
    return;
  }
  constexpr int64_t kCount = kPerByte<Format>;
  const int64_t whole = n / kCount;
  for (int64_t k = 0; k < whole; ++k) codes[k] = pack(format, values + k * kCount, kCount);
  if (whole * kCount < n) {
    codes[whole] = pack(format, values + whole * kCount, n - whole * kCount);
  }
}

template <typename Format>
float read_scale(const std::byte* bytes) {
  constexpr int64_t kDropped = sizeof(float) - Format::kScaleBytes;
  uint32_t bits = 0;
  for (int64_t k = 0; k < Format::kScaleBytes; ++k) {
    bits |= static_cast<uint32_t>(bytes[k]) << (8 * (kDropped + k));
  }
  return std::bit_cast<float>(bits);
}

// Decodes the n values of a block.
template <typename Format>
void decode_block(const std::byte* __restrict bytes, float* __restrict values, int64_t n) {
  const float scale = read_scale<Format>(bytes);
  const std::byte* __restrict codes = bytes + Format::kScaleBytes;
  constexpr int64_t kCount = kPerByte<Format>;
  const int64_t whole = n / kCount;
  for (int64_t k = 0; k < whole; ++k) {
    for (int64_t j = 0; j < kCount; ++j) {
      values[k * kCount + j] = unpack<Format>(codes[k], j, scale);
    }
  }
  for (int64_t k = whole * kCount; k < n; ++k) {
    values[k] = unpack<Format>(codes[whole], k - whole * kCount, scale);
  }
}

}  // namespace farstep::outer_optimizer
