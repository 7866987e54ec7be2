#include "outer_optimizer/codec/block_codecs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "trainer/base/error.h"

namespace farstep {

namespace {

using Limits = std::numeric_limits<float>;

constexpr uint32_t kSignBit = 0x80000000;

// The largest |x|, or NaN if a value is not finite. It compares bits, as comparisons of floats pass
// over NaN.
float largest_magnitude(const float* values, int64_t n) {
  int32_t largest = 0;
  for (int64_t k = 0; k < n; ++k) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(values[k]) & ~kSignBit;
    largest = std::max(largest, static_cast<int32_t>(magnitude));
  }
  return largest < 0x7f800000 ? std::bit_cast<float>(largest) : Limits::quiet_NaN();
}

// The largest float that, multiplied by `levels`, is finite.
constexpr float largest_scale(int levels) {
  const float scale = Limits::max() / static_cast<float>(levels);
  const bool overflows = double{scale} * levels > double{Limits::max()};
  return overflows ? std::bit_cast<float>(std::bit_cast<uint32_t>(scale) - 1) : scale;
}

// `scale`, or 0 where it is too small, or less where it is too large; NaN stays NaN.
template <int levels>
float bounded_scale(float scale) {
  constexpr float kLargest = largest_scale(levels);
  return scale < Limits::min() ? 0 : scale > kLargest ? kLargest : scale;
}

// Sums term(k) over k < n in 16 lanes: an order that suits every instruction set.
template <typename Term>
float sum_in_lanes(int64_t n, const Term& term) {
  constexpr int64_t kLanes = 16;
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

}  // namespace

// A format derives from a block how it encodes: its scale, and the code of a value in the lowest
// kBits bits. `value` takes the code, sign-extended, to what the scale multiplies.
template <int bits>
struct EqualSteps {
  static constexpr int kBits = bits;
  static constexpr int kLevels = (1 << (bits - 1)) - 1;
  float scale;

  EqualSteps(const float* values, int64_t n)
      : scale(bounded_scale<kLevels>(largest_magnitude(values, n) / kLevels)) {}
  // Adding 1.5 * 2^23 rounds to an integer, half to even, in the lowest bits.
  uint32_t code(float x) const { return std::bit_cast<uint32_t>(x / scale + 0x1.8p23F); }
  static float value(int32_t code) { return static_cast<float>(code); }
};

struct Int8Format : EqualSteps<8> {
  static constexpr std::string_view kName = "int8";
  static constexpr int64_t kDefaultBlock = 256;
  using EqualSteps::EqualSteps;
};

struct Int4Format : EqualSteps<4> {
  static constexpr std::string_view kName = "int4";
  static constexpr int64_t kDefaultBlock = 512;
  using EqualSteps::EqualSteps;
};

struct Int2Format {
  static constexpr std::string_view kName = "int2";
  static constexpr int64_t kDefaultBlock = 512;
  static constexpr int kBits = 2;
  float scale;
  float unit;         // about the largest: squares of values are taken in units of it
  float mean_square;  // in squared units

  Int2Format(const float* values, int64_t n)
      : scale(bounded_scale<3>(largest_magnitude(values, n))), unit(scale), mean_square(0) {
    if (!(scale > 0)) return;  // zeros, or not finite
    const auto square = [&](int64_t k) { return (values[k] / unit) * (values[k] / unit); };
    mean_square = sum_in_lanes(n, square) / static_cast<float>(n);
    const auto dot = [&](int64_t k) {
      return std::abs(values[k] / unit) * (is_large(values[k]) ? 3.0F : 1.0F);
    };
    const auto norm = [&](int64_t k) { return is_large(values[k]) ? 9.0F : 1.0F; };
    scale = bounded_scale<3>(unit * (sum_in_lanes(n, dot) / sum_in_lanes(n, norm)));
  }
  bool is_large(float x) const { return (x / unit) * (x / unit) > mean_square; }
  uint32_t code(float x) const {
    const int32_t all_ones_if_negative = std::bit_cast<int32_t>(x) >> 31;
    return (is_large(x) ? 1U : 0U) ^ static_cast<uint32_t>(all_ones_if_negative);
  }
  static float value(int32_t code) { return static_cast<float>(2 * code + 1); }
};

namespace {

constexpr int64_t kScaleBytes = sizeof(float);

template <typename Format>
constexpr int64_t kPerByte = 8 / Format::kBits;

// Bytes of the codes of n values.
template <typename Format>
int64_t code_bytes(int64_t n) {
  return (n + kPerByte<Format> - 1) / kPerByte<Format>;
}

template <typename Format>
uint32_t pack(const Format& format, const float* values, int64_t count) {
  uint32_t byte = 0;
  for (int64_t k = 0; k < count; ++k) {
    const uint32_t code = format.code(values[k]) & ((1U << Format::kBits) - 1);
    byte |= code << (k * Format::kBits);
  }
  return byte;
}

template <typename Format>
float unpack(std::byte byte, int64_t k, float scale) {
  const auto shifted = std::to_integer<uint32_t>(byte) << (32 - (k + 1) * Format::kBits);
  return Format::value(static_cast<int32_t>(shifted) >> (32 - Format::kBits)) * scale;
}

template <typename Format>
struct EncodeBlocks {
  static void run(const float* values, std::byte* bytes, int64_t n, int64_t block) {
    for (; n > 0; n -= block, values += block) {
      const int64_t size = std::min(n, block);
      encode_block(values, bytes, size);
      bytes += kScaleBytes + code_bytes<Format>(size);
    }
  }

  static void encode_block(const float* __restrict values, std::byte* __restrict bytes, int64_t n) {
    const Format format(values, n);
    std::memcpy(bytes, &format.scale, kScaleBytes);
    std::byte* __restrict codes = bytes + kScaleBytes;
    if (!(format.scale > 0)) {
      std::memset(codes, 0, static_cast<std::size_t>(code_bytes<Format>(n)));
      return;
    }
    constexpr int64_t kCount = kPerByte<Format>;
    const int64_t whole = n / kCount;
    for (int64_t k = 0; k < whole; ++k) {
      codes[k] = static_cast<std::byte>(pack(format, values + k * kCount, kCount));
    }
    if (whole * kCount < n) {
      codes[whole] =
          static_cast<std::byte>(pack(format, values + whole * kCount, n - whole * kCount));
    }
  }
};

template <typename Format>
struct DecodeBlocks {
  static void run(const std::byte* bytes, float* values, int64_t n, int64_t block) {
    for (; n > 0; n -= block, values += block) {
      const int64_t size = std::min(n, block);
      decode_block(bytes, values, size);
      bytes += kScaleBytes + code_bytes<Format>(size);
    }
  }

  static void decode_block(const std::byte* __restrict bytes, float* __restrict values, int64_t n) {
    float scale = 0;
    std::memcpy(&scale, bytes, kScaleBytes);
    const std::byte* __restrict codes = bytes + kScaleBytes;
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
};

}  // namespace

template <typename Format>
const int64_t BlockCodec<Format>::kDefaultBlock = Format::kDefaultBlock;

template <typename Format>
BlockCodec<Format>::BlockCodec(int64_t block, InstructionSet set) : block_(block), set_(set) {
  if (block < 1 || block > kLargestBlock || block % kPerByte<Format> != 0) {
    throw ConfigError(
        fmt::format("sync.codec.block is {}: a block of {} has 1 to {} values, in multiples of {}",
                    block, Format::kName, kLargestBlock, kPerByte<Format>));
  }
}

template <typename Format>
std::string_view BlockCodec<Format>::name() const {
  return Format::kName;
}

template <typename Format>
int64_t BlockCodec<Format>::encoded_bytes(int64_t n) const {
  const int64_t blocks = (n + block_ - 1) / block_;
  return blocks * kScaleBytes + code_bytes<Format>(n);
}

template <typename Format>
void BlockCodec<Format>::encode(std::span<const float> values, std::span<std::byte> bytes) const {
  check_size(bytes.size(), values.size());
  run_kernel<EncodeBlocks<Format>>(set_, values.data(), bytes.data(), std::ssize(values), block_);
}

template <typename Format>
void BlockCodec<Format>::decode(std::span<const std::byte> bytes, std::span<float> values) const {
  check_size(bytes.size(), values.size());
  run_kernel<DecodeBlocks<Format>>(set_, bytes.data(), values.data(), std::ssize(values), block_);
}

template class BlockCodec<Int8Format>;
template class BlockCodec<Int4Format>;
template class BlockCodec<Int2Format>;

}  // namespace farstep
