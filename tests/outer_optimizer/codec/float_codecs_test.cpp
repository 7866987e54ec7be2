#include "outer_optimizer/codec/float_codecs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/outer_optimizer/codec/every_codec.h"
#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"

using namespace farstep;
using namespace farstep::outer_optimizer;

namespace {

using Limits = std::numeric_limits<float>;

// Every pattern of 16 bits from 0 to `last`.
std::vector<uint16_t> patterns(uint16_t last) {
  std::vector<uint16_t> all(last + 1U);
  std::iota(all.begin(), all.end(), uint16_t{0});
  return all;
}

std::vector<float> lengthened(const Codec& codec, const std::vector<uint16_t>& shorts) {
  return decoded(codec, std::as_bytes(std::span(shorts)), shorts.size());
}

std::vector<uint16_t> shortened(const Codec& codec, const std::vector<float>& values) {
  const auto bytes = encoded(codec, values);
  std::vector<uint16_t> shorts(values.size());
  std::memcpy(shorts.data(), bytes.data(), bytes.size());
  return shorts;
}

// The value of a binary16 by its definition.
double half_value(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int digits = half & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(digits, -24) : std::ldexp(1024 + digits, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

// Between any two neighbours among the positive patterns up to `last`: the tie goes to the even
// one, what is beside the tie to the nearer, with either sign.
void check_rounding(const Codec& codec, uint16_t last) {
  const auto grid = lengthened(codec, patterns(last));
  std::vector<float> values;
  std::vector<uint16_t> expected;
  const auto expect = [&](float value, std::size_t pattern) {
    values.insert(values.end(), {value, -value});
    expected.push_back(static_cast<uint16_t>(pattern));
    expected.push_back(static_cast<uint16_t>(pattern | 0x8000));
  };
  for (std::size_t low = 0; low + 1 < grid.size(); ++low) {
    const auto middle = static_cast<float>((double{grid[low]} + double{grid[low + 1]}) / 2);
    expect(grid[low], low);
    expect(middle, low + low % 2);
    expect(std::nextafter(middle, 0.0F), low);
    expect(std::nextafter(middle, Limits::max()), low + 1);
  }
  REQUIRE(shortened(codec, values) == expected);
}

}  // namespace

TEST_CASE("fp16 decodes every pattern to its value") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const auto all = patterns(0xffff);
  const auto values = lengthened(Fp16Codec(), all);
  int64_t wrong = 0;
  for (const uint16_t half : all) {
    const bool special = (half & 0x7c00) == 0x7c00;
    const bool is_nan = special && (half & 0x3ff) != 0;
    wrong += std::isnan(values[half]) != is_nan || std::isfinite(values[half]) == special ||
             std::signbit(values[half]) != (half >> 15 != 0) ||
             (!special && values[half] != half_value(half));
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("fp16 rounds to nearest with ties to even") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  check_rounding(Fp16Codec(), 0x7bff);
}

TEST_CASE("bf16 rounds to nearest with ties to even") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  check_rounding(Bf16Codec(), 0x7f7f);
}

TEST_CASE("fp16 and bf16 saturate what is finite") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const float value : {65519.0F, 65520.0F, 1e6F, 1e38F, Limits::max()}) {
    REQUIRE(sent(Fp16Codec(), std::vector{value, -value}) == std::vector{65504.0F, -65504.0F});
  }
  const float largest = std::bit_cast<float>(0x7f7f0000);
  REQUIRE(sent(Bf16Codec(), std::vector{Limits::max(), -Limits::max()}) ==
          std::vector{largest, -largest});
}

TEST_CASE("values that a codec cannot send are counted") {
  const std::vector<float> values{0, 65504, -65504, 65505, -1e30F, 1};
  for (const auto& codec : every_codec()) {
    CHECK(count_saturated(*codec, values) == (codec->name() == "fp16" ? 2 : 0));
  }
  CHECK(count_saturated(Fp16Codec(), {}) == 0);
}

TEST_CASE("fp16 and bf16 keep infinity and NaN") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const std::vector<float> infinite{Limits::infinity(), -Limits::infinity()};
  const std::vector<float> nan{Limits::quiet_NaN(), std::bit_cast<float>(0xff800001),
                               std::bit_cast<float>(0x7fffffff)};
  for (const auto& codec : every_codec()) {
    if (codec->name() != "fp16" && codec->name() != "bf16") continue;
    REQUIRE(sent(*codec, infinite) == infinite);
    for (const float value : sent(*codec, nan)) REQUIRE(std::isnan(value));
  }
}

TEST_CASE("fp16 and bf16 keep their bounds") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const auto values = wild(50'000);
  const auto half = sent(Fp16Codec(), values);
  const auto brain = sent(Bf16Codec(), values);
  int64_t beyond = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double value = values[k];
    const double magnitude = std::abs(value);
    const double half_bound = magnitude < 0x1p-14 ? 0x1p-25 : magnitude * 0x1p-11;
    beyond += magnitude <= 65504 && std::abs(value - half[k]) > half_bound;
    const double brain_bound = magnitude < 0x1p-126 ? 0x1p-134 : magnitude * 0x1p-8;
    beyond += std::abs(value - brain[k]) > brain_bound;
  }
  REQUIRE(beyond == 0);
}
