// What the tests of codecs share: one of every codec, and values of many kinds.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "outer_optimizer/codec/block_codecs.h"
#include "outer_optimizer/codec/float_codecs.h"
#include "outer_optimizer/codec/top_k_codec.h"

namespace farstep::outer_optimizer {

using Codecs = std::vector<std::unique_ptr<Codec>>;

// Every codec with its own choice of block, and those that have blocks with small ones as well.
inline Codecs every_codec() {
  Codecs codecs;
  codecs.push_back(std::make_unique<Fp32Codec>());
  codecs.push_back(std::make_unique<Fp16Codec>());
  codecs.push_back(std::make_unique<Bf16Codec>());
  codecs.push_back(std::make_unique<Int8Codec>(Int8Codec::kDefaultBlock));
  codecs.push_back(std::make_unique<Int8Codec>(7));
  codecs.push_back(std::make_unique<Int4Codec>(Int4Codec::kDefaultBlock));
  codecs.push_back(std::make_unique<Int4Codec>(34));
  codecs.push_back(std::make_unique<Int2Codec>(Int2Codec::kDefaultBlock));
  codecs.push_back(std::make_unique<Int2Codec>(36));
  codecs.push_back(std::make_unique<TopKCodec>(0.05));
  codecs.push_back(std::make_unique<TopKCodec>(0.3, 11));
  return codecs;
}

// "int4 in blocks of 512".
inline std::string describe(const Codec& codec) {
  return std::string(codec.name()) + " in blocks of " + std::to_string(codec.block_values());
}

// Numbers of values around the edges of the codec's blocks.
inline std::vector<int64_t> sizes_for(const Codec& codec) {
  const int64_t block = codec.block_values();
  return {0, 1, 2, 3, block - 1, block, block + 1, 3 * block + 7};
}

inline std::vector<float> gaussian(int64_t n, unsigned seed = 1, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

// Gaussian signs and digits with exponents over the whole range of fp32, subnormals included.
inline std::vector<float> wild(int64_t n, unsigned seed = 1) {
  auto values = gaussian(n, seed);
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> exponent(-148, 124);
  for (float& value : values) value = std::ldexp(value, exponent(random));
  return values;
}

struct Shape {
  const char* name;
  std::function<float(std::size_t)> value;  // of an index
};

// Values that are finite and in some way odd.
inline const std::vector<Shape>& finite_shapes() {
  using Limits = std::numeric_limits<float>;
  static const std::vector<Shape> shapes{
      {"zeros", [](std::size_t) { return 0.0F; }},
      {"negative zeros", [](std::size_t) { return -0.0F; }},
      {"constant", [](std::size_t) { return 0.3F; }},
      {"negative", [](std::size_t k) { return -1.0F - static_cast<float>(k % 17); }},
      {"huge", [](std::size_t k) { return k % 3 == 0 ? -1e38F : 0.7e38F; }},
      {"largest",
       [](std::size_t k) { return k % 2 == 0 ? Limits::max() : -0.99F * Limits::max(); }},
      {"subnormal", [](std::size_t k) { return k % 3 == 0 ? -1e-42F : 3e-42F; }},
      {"smallest", [](std::size_t) { return Limits::denorm_min(); }},
      {"one spike", [](std::size_t k) { return k % 100 == 50 ? Limits::max() : 1e-40F; }}};
  return shapes;
}

inline std::vector<float> shaped(const Shape& shape, int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = shape.value(k);
  return values;
}

inline std::vector<std::byte> encoded(const Codec& codec, std::span<const float> values) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec.encoded_bytes(std::ssize(values))));
  codec.encode(values, bytes);
  return bytes;
}

// The n values that `bytes` decode to.
inline std::vector<float> decoded(const Codec& codec, std::span<const std::byte> bytes,
                                  std::size_t n) {
  std::vector<float> values(n, -123.0F);  // decoding must replace all of them
  codec.decode(bytes, values);
  return values;
}

// What `values` become on the way.
inline std::vector<float> sent(const Codec& codec, std::span<const float> values) {
  return decoded(codec, encoded(codec, values), values.size());
}

inline bool same_bits(std::span<const float> left, std::span<const float> right) {
  return left.size() == right.size() &&
         (left.empty() || std::memcmp(left.data(), right.data(), left.size_bytes()) == 0);
}

// Values to try on n places: usual, of all sizes, odd, and with a value that is not finite.
inline std::vector<std::vector<float>> value_sets(int64_t n) {
  std::vector<std::vector<float>> sets{gaussian(n), wild(n)};
  for (const auto& shape : finite_shapes()) sets.push_back(shaped(shape, n));
  using Limits = std::numeric_limits<float>;
  for (const float bad : {Limits::quiet_NaN(), -Limits::infinity()}) {
    if (n > 0) sets.emplace_back(gaussian(n))[static_cast<std::size_t>(n / 2)] = bad;
  }
  return sets;
}

// The same bits, or NaN both: processors give NaNs different bits.
inline bool same_values(std::span<const float> left, std::span<const float> right) {
  const auto same = [](float a, float b) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b));
  };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), same);
}

inline bool all_finite(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// |left - right|^2 and |values|^2 in fp64.
inline double squared_distance(std::span<const float> left, std::span<const float> right) {
  double sum = 0;
  for (std::size_t k = 0; k < left.size(); ++k) {
    const double difference = double{left[k]} - double{right[k]};
    sum += difference * difference;
  }
  return sum;
}

inline double squared_norm(std::span<const float> values) {
  return squared_distance(values, std::vector<float>(values.size()));
}

}  // namespace farstep::outer_optimizer
