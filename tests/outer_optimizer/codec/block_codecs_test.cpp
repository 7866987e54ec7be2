#include "outer_optimizer/codec/block_codecs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/outer_optimizer/codec/every_codec.h"
#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::outer_optimizer;

namespace {

using Limits = std::numeric_limits<float>;

std::vector<int> numbers(std::span<const std::byte> bytes) {
  std::vector<int> numbers;
  for (const std::byte byte : bytes) numbers.push_back(std::to_integer<int>(byte));
  return numbers;
}

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// int8 and int4 as another program would write them: division, then rounding of halves to even;
// int4's scale is a bf16 number.
std::vector<float> replayed(std::span<const float> values, int levels) {
  float scale = largest_magnitude(values) / static_cast<float>(levels);
  if (levels == 7) scale = sent(Bf16Codec(), std::vector{scale})[0];
  std::vector<float> replayed;
  for (const float value : values) replayed.push_back(std::nearbyint(value / scale) * scale);
  return replayed;
}

void check_error_bound(const Codec& codec, int levels, std::span<const float> values) {
  const auto block = static_cast<std::size_t>(codec.block_values());
  const auto got = sent(codec, values);
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const std::size_t size = std::min(block, values.size() - begin);
    const double largest = largest_magnitude(values.subspan(begin, size));
    const bool vanishes = largest < levels * double{Limits::min()};
    const double half = levels == 7 ? 0.5 * 257 / 256 : 0.5001;  // with the scale's own rounding
    const double bound = vanishes ? largest : half * largest / levels;
    double worst = 0;
    for (std::size_t k = begin; k < begin + size; ++k) {
      worst = std::max(worst, std::abs(double{values[k]} - double{got[k]}));
    }
    REQUIRE(worst <= bound);
  }
}

// How far the mean of 8 sites' deltas, coded, averaged and coded once more, is from the true mean.
double error_of_mean(const Codec& codec) {
  constexpr int64_t kValues = 16384;
  constexpr unsigned kSites = 8;
  const auto shared = gaussian(kValues, 100, 0.5F);  // what the sites agree on
  std::vector<float> true_mean(kValues);
  std::vector<float> mean(kValues);
  for (unsigned site = 0; site < kSites; ++site) {
    auto delta = gaussian(kValues, site);
    for (std::size_t k = 0; k < delta.size(); ++k) {
      delta[k] += shared[k];
      true_mean[k] += delta[k] / kSites;
    }
    codec.add_decoded(encoded(codec, delta), 1.0F / kSites, mean);
  }
  return std::sqrt(squared_distance(sent(codec, mean), true_mean) / squared_norm(true_mean));
}

}  // namespace

TEST_CASE("int8 writes a scale and a byte a value") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const std::vector<float> values{127, -127, 0.5F, 1.5F, -2.5F};
  REQUIRE(numbers(encoded(Int8Codec(), values)) ==
          std::vector<int>{0, 0, 0x80, 0x3f, 127, 0x81, 0, 2, 0xfe});
}

TEST_CASE("int4 writes a bf16 scale and two values a byte with the first one low") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const std::vector<float> values{14, -14, 2, 1, 3};
  REQUIRE(numbers(encoded(Int4Codec(), values)) == std::vector<int>{0, 0x40, 0x97, 0x01, 0x02});
}

TEST_CASE("int2 writes a scale and four values a byte") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const std::vector<float> values{0, 0, 0, 4, 1, 1, -1, -1, -2};
  REQUIRE(numbers(encoded(Int2Codec(4), values)) == std::vector<int>{0x80, 0x3f, 0x40,    //
                                                                     0x80, 0x3f, 0xf0,    //
                                                                     0x00, 0x40, 0x03});  //
  REQUIRE(sent(Int2Codec(4), values) == std::vector<float>{1, 1, 1, 3, 1, 1, -1, -1, -2});
}

TEST_CASE("int8 and int4 can be replayed from their description") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto values = gaussian(500, seed, 1e-3F);
    REQUIRE(sent(Int8Codec(500), values) == replayed(values, 127));
    REQUIRE(sent(Int4Codec(500), values) == replayed(values, 7));
  }
}

TEST_CASE("int8 and int4 keep their bounds") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const auto& values : {gaussian(20'000), wild(20'000)}) {
    for (const int64_t block : {1, 3, 32, 256}) check_error_bound(Int8Codec(block), 127, values);
    for (const int64_t block : {2, 32, 512}) check_error_bound(Int4Codec(block), 7, values);
  }
}

TEST_CASE("int2 shrinks what is not sent in every block") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t block : {4, 32, 512}) {
    const Int2Codec codec(block);
    for (const auto& values : {gaussian(20'000), wild(20'000)}) {
      const auto got = sent(codec, values);
      for (std::size_t begin = 0; begin < values.size(); begin += static_cast<std::size_t>(block)) {
        const auto size = std::min(static_cast<std::size_t>(block), values.size() - begin);
        const auto of_block = std::span(values).subspan(begin, size);
        const double norm = squared_norm(of_block);
        if (norm < 1e-70) continue;  // may decode to zeros
        const double error = squared_distance(of_block, std::span(got).subspan(begin, size));
        REQUIRE(error <= (1 - 1 / (10.0 * static_cast<double>(size))) * norm);
      }
    }
  }
}

TEST_CASE("int2 takes the best scale for its codes") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const auto values = gaussian(512);
  const double rms = std::sqrt(squared_norm(values) / 512);
  const auto got = sent(Int2Codec(512), values);
  double dot = 0;
  double norm = 0;
  for (const float value : values) {
    const double code = std::abs(value) > rms ? 3 : 1;
    dot += code * std::abs(value);
    norm += code * code;
  }
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double code = (std::abs(values[k]) > rms ? 3 : 1) * (values[k] < 0 ? -1 : 1);
    REQUIRE(got[k] == Approx(code * dot / norm).epsilon(1.0 / 256));
  }
}

TEST_CASE("constant blocks arrive as they are but for the scale") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const float value : {0.3F, -17.0F, 1e30F}) {
    const std::vector<float> values(100, value);
    const auto relative_error = [&](const Codec& codec) {
      return std::sqrt(squared_distance(sent(codec, values), values) / squared_norm(values));
    };
    REQUIRE(relative_error(Int8Codec()) <= 1e-6);
    // The rounding of a scale of two bytes.
    REQUIRE(relative_error(Int4Codec()) <= 1.0 / 256);
    REQUIRE(relative_error(Int2Codec()) <= 1.0 / 256);
  }
}

TEST_CASE("blocks below the smallest scale decode to zeros and those above do not") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const auto first_of = [](const Codec& codec, float value) {
    return sent(codec, std::vector{value, 0.0F})[0];
  };
  REQUIRE(first_of(Int8Codec(), 1.4e-36F) == 0);
  REQUIRE(first_of(Int8Codec(), 1.5e-36F) == Approx(1.5e-36F));
  REQUIRE(first_of(Int4Codec(), 8.1e-38F) == 0);
  REQUIRE(first_of(Int4Codec(), 8.3e-38F) == Approx(8.3e-38F).epsilon(1.0 / 256));
  REQUIRE(first_of(Int2Codec(), Limits::min() / 2) == 0);
}

TEST_CASE("a block of int codes with a NaN or an infinity decodes to NaN throughout") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const float bad : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    const std::vector<float> values{1, bad, 2};
    for (const auto& got :
         {sent(Int8Codec(), values), sent(Int4Codec(), values), sent(Int2Codec(), values)}) {
      for (const float value : got) REQUIRE(std::isnan(value));
    }
  }
}

TEST_CASE("a block that is not finite has a scale of fixed bits and codes of zero") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  REQUIRE(numbers(encoded(Int8Codec(4), std::vector<float>{1, Limits::infinity(), 2, 3})) ==
          std::vector<int>{0, 0, 0xc0, 0x7f, 0, 0, 0, 0});
}

TEST_CASE("blocks that do not fill bytes are refused with the path of the setting") {
  using Catch::Contains;
  REQUIRE_THROWS_WITH(Int4Codec(33), Contains("sync.codec.block is 33") && Contains("int4"));
  REQUIRE_THROWS_WITH(Int2Codec(34), Contains("sync.codec.block is 34"));
  REQUIRE_THROWS_AS(Int8Codec(0), ConfigError);
  REQUIRE_THROWS_AS(Int8Codec(65537), ConfigError);
  REQUIRE(Int4Codec(65536).block_values() == 65536);
}

TEST_CASE("the mean of eight deltas is as exact as the literature has it") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  CHECK(error_of_mean(Int8Codec(256)) == Approx(0.008).epsilon(0.1));
  CHECK(error_of_mean(Int4Codec(32)) == Approx(0.11).epsilon(0.1));
  CHECK(error_of_mean(Int4Codec(128)) == Approx(0.135).epsilon(0.1));
}
