// The arithmetic of block_codecs.h, block by block, for processors and GPUs.
//
// kLanes lanes work on a block: value k belongs to lane k % kLanes. Sums are added within a lane
// and then lane by lane, so that every machine gets the same bits. `Lanes` does the work: one
// thread for all lanes (OneThread), or on a GPU one thread for each lane. It has
//   for_each(n, action)   calls action(k) for every k < n, in any order;
//   largest(n, term)      returns the largest of the integers term(k), at least 0, to all lanes;
//   sum(n, term)          returns the sum of the floats term(k), in the order above, to all lanes;
//   sync()                makes earlier writes of all lanes visible to all lanes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "trainer/base/processor/host_device.h"

namespace farstep::outer_optimizer {

// Half a warp of a GPU, and the floats of an AVX-512 vector.
inline constexpr int kLanes = 16;

// Do one lane's part of the work.
template <typename Action>
FARSTEP_HOST_DEVICE void for_each_of_lane(int lane, int64_t n, const Action& action) {
  for (int64_t k = lane; k < n; k += kLanes) action(k);
}
template <typename Term>
FARSTEP_HOST_DEVICE int32_t largest_of_lane(int lane, int64_t n, const Term& term) {
  int32_t largest = 0;
  for (int64_t k = lane; k < n; k += kLanes) largest = std::max(largest, term(k));
  return largest;
}
template <typename Term>
FARSTEP_HOST_DEVICE float sum_of_lane(int lane, int64_t n, const Term& term) {
  float sum = 0;
  for (int64_t k = lane; k < n; k += kLanes) sum += term(k);
  return sum;
}

// One thread does the work of all lanes, in loops that compilers vectorise.
struct OneThread {
  template <typename Action>
  void for_each(int64_t n, const Action& action) const {
    for (int64_t k = 0; k < n; ++k) action(k);
  }
  template <typename Term>
  int32_t largest(int64_t n, const Term& term) const {
    int32_t largest = 0;
    for (int64_t k = 0; k < n; ++k) largest = std::max(largest, term(k));
    return largest;
  }
  template <typename Term>
  float sum(int64_t n, const Term& term) const {
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
  void sync() const {}
};

// Returns the largest |x|, or NaN if a value is not finite. Compares bits, because a comparison of
// floats ignores NaN.
template <typename Lanes>
FARSTEP_HOST_DEVICE float largest_magnitude(const Lanes& lanes, const float* values, int64_t n) {
  const int32_t largest =
      lanes.largest(n, [=](int64_t k) { return std::bit_cast<int32_t>(values[k]) & 0x7fffffff; });
  return std::bit_cast<float>(largest < 0x7f800000 ? largest : 0x7fc00000);
}

// Rounds a scale, half to even, to its highest `bytes` of four bytes; only these are sent.
template <int64_t bytes>
FARSTEP_HOST_DEVICE constexpr float rounded_scale(float scale) {
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
FARSTEP_HOST_DEVICE float bounded_scale(float scale) {
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

  template <typename Lanes>
  FARSTEP_HOST_DEVICE EqualSteps(const Lanes& lanes, const float* values, int64_t n)
      : scale(bounded_scale<kLevels, kScaleBytes>(largest_magnitude(lanes, values, n) / kLevels)) {}
  // Adding 1.5 * 2^23 rounds to an integer, half to even, and puts it into the lowest bits.
  FARSTEP_HOST_DEVICE uint32_t code(float x) const {
    return std::bit_cast<uint32_t>(x / scale + 0x1.8p23F);
  }
  FARSTEP_HOST_DEVICE static float value(int32_t code) { return static_cast<float>(code); }
};

struct Int8Format : EqualSteps<8, 4> {
  static constexpr std::string_view kName = "int8";
  static constexpr int64_t kDefaultBlock = 256;  // its scale adds 1.6 % to the bytes
  using EqualSteps::EqualSteps;
};

struct Int4Format : EqualSteps<4, 2> {
  static constexpr std::string_view kName = "int4";
  static constexpr int64_t kDefaultBlock = 160;  // larger blocks cost loss (docs/results.md)
  using EqualSteps::EqualSteps;
};

struct Int2Format {
  static constexpr std::string_view kName = "int2";
  static constexpr int64_t kDefaultBlock = 512;  // its scale adds 3.1 % to the bytes
  static constexpr int kBits = 2;
  static constexpr int64_t kScaleBytes = 4;
  float scale;
  float unit;         // about the largest magnitude; keeps squares in range
  float mean_square;  // in units of unit^2

  template <typename Lanes>
  FARSTEP_HOST_DEVICE Int2Format(const Lanes& lanes, const float* values, int64_t n)
      : scale(bounded_scale<3, kScaleBytes>(largest_magnitude(lanes, values, n))),
        unit(scale),
        mean_square(0) {
    if (!(scale > 0)) return;  // zeros, or values that are not finite
    const auto square = [=, this](int64_t k) { return (values[k] / unit) * (values[k] / unit); };
    mean_square = lanes.sum(n, square) / static_cast<float>(n);
    const auto dot = [=, this](int64_t k) {
      const float magnitude =
          std::bit_cast<float>(std::bit_cast<uint32_t>(values[k] / unit) & 0x7fffffff);
      return magnitude * (is_large(values[k]) ? 3.0F : 1.0F);
    };
    const auto norm = [=, this](int64_t k) { return is_large(values[k]) ? 9.0F : 1.0F; };
    scale = bounded_scale<3, kScaleBytes>(unit * (lanes.sum(n, dot) / lanes.sum(n, norm)));
  }
  FARSTEP_HOST_DEVICE bool is_large(float x) const { return (x / unit) * (x / unit) > mean_square; }
  FARSTEP_HOST_DEVICE uint32_t code(float x) const {
    const int32_t all_ones_if_negative = std::bit_cast<int32_t>(x) >> 31;
    return (is_large(x) ? 1U : 0U) ^ static_cast<uint32_t>(all_ones_if_negative);
  }
  FARSTEP_HOST_DEVICE static float value(int32_t code) { return static_cast<float>(2 * code + 1); }
};

template <typename Format>
inline constexpr int64_t kPerByte = 8 / Format::kBits;

// Returns the bytes of the codes of n values.
template <typename Format>
FARSTEP_HOST_DEVICE int64_t code_bytes(int64_t n) {
  return (n + kPerByte<Format> - 1) / kPerByte<Format>;
}

// Returns the byte with the codes of up to kPerByte values.
template <typename Format>
FARSTEP_HOST_DEVICE std::byte pack(const Format& format, const float* values, int64_t count) {
  uint32_t byte = 0;
  for (int64_t k = 0; k < count; ++k) {
    const uint32_t code = format.code(values[k]) & ((1U << Format::kBits) - 1);
    byte |= code << (k * Format::kBits);
  }
  return static_cast<std::byte>(byte);
}

// Returns the value of code k of a byte.
template <typename Format>
FARSTEP_HOST_DEVICE float unpack(std::byte byte, int64_t k, float scale) {
  const auto shifted = static_cast<uint32_t>(byte) << (32 - (k + 1) * Format::kBits);
  return Format::value(static_cast<int32_t>(shifted) >> (32 - Format::kBits)) * scale;
}

// Encodes a block of n values. Returns its format, for sent_value().
template <typename Format, typename Lanes>
FARSTEP_HOST_DEVICE Format encode_block(const Lanes& lanes, const float* __restrict values,
                                        std::byte* __restrict bytes, int64_t n) {
  const Format format(lanes, values, n);
  constexpr int64_t kDropped = sizeof(float) - Format::kScaleBytes;
  const auto scale = std::bit_cast<uint32_t>(format.scale);
  lanes.for_each(Format::kScaleBytes, [=](int64_t k) {
    bytes[k] = static_cast<std::byte>(scale >> (8 * (kDropped + k)));
  });
  std::byte* __restrict codes = bytes + Format::kScaleBytes;
  if (!(format.scale > 0)) {
    lanes.for_each(code_bytes<Format>(n), [=](int64_t k) { codes[k] = std::byte{0}; });
    return format;
  }
  constexpr int64_t kCount = kPerByte<Format>;
  const int64_t whole = n / kCount;
  lanes.for_each(whole, [=](int64_t k) { codes[k] = pack(format, values + k * kCount, kCount); });
  lanes.for_each(code_bytes<Format>(n) - whole, [=](int64_t) {
    codes[whole] = pack(format, values + whole * kCount, n - whole * kCount);
  });
  return format;
}

// Returns the decoded value of `x`, which is in the block of `format`.
template <typename Format>
FARSTEP_HOST_DEVICE float sent_value(const Format& format, float x) {
  const std::byte code = format.scale > 0 ? pack(format, &x, 1) : std::byte{0};
  return unpack<Format>(code, 0, format.scale);
}

template <typename Format>
FARSTEP_HOST_DEVICE float read_scale(const std::byte* bytes) {
  constexpr int64_t kDropped = sizeof(float) - Format::kScaleBytes;
  uint32_t bits = 0;
  for (int64_t k = 0; k < Format::kScaleBytes; ++k) {
    bits |= static_cast<uint32_t>(bytes[k]) << (8 * (kDropped + k));
  }
  return std::bit_cast<float>(bits);
}

// Calls sink(k, value) for every value of a block of n; neighbouring lanes get neighbouring values.
template <typename Format, typename Lanes, typename Sink>
FARSTEP_HOST_DEVICE void decode_block(const Lanes& lanes, const std::byte* bytes, int64_t n,
                                      const Sink& sink) {
  const float scale = read_scale<Format>(bytes);
  const std::byte* codes = bytes + Format::kScaleBytes;
  lanes.for_each(n, [=](int64_t k) {
    sink(k, unpack<Format>(codes[k / kPerByte<Format>], k % kPerByte<Format>, scale));
  });
}

}  // namespace farstep::outer_optimizer
