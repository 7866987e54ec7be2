#include "outer_optimizer/codec/top_k_codec.h"

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

TEST_CASE("top_k keeps the values of largest magnitude") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const std::vector<float> values{1, -5, 2, 4, -3, 0, 6, 1};
  REQUIRE(sent(TopKCodec(0.5, 4), values) == std::vector<float>{0, -5, 0, 4, -3, 0, 6, 0});
  REQUIRE(sent(TopKCodec(0.375, 8), values) == std::vector<float>{0, -5, 0, 4, 0, 0, 6, 0});
}

TEST_CASE("top_k keeps the first of equal magnitudes") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const std::vector<float> values{1, -2, 2, 3, -2, 2};
  REQUIRE(sent(TopKCodec(0.5, 6), values) == std::vector<float>{0, -2, 2, 3, 0, 0});
  REQUIRE(sent(TopKCodec(0.5), std::vector<float>(5, -1)) == std::vector<float>{-1, -1, -1, 0, 0});
}

TEST_CASE("top_k writes values and then offsets") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  std::vector<float> values(300);
  values[258] = -2;
  values[1] = 1;
  const auto bytes = encoded(TopKCodec(2.0 / 300), values);
  const std::vector<int> expected{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 1, 0, 2, 1};
  REQUIRE(bytes.size() == expected.size());
  REQUIRE(std::equal(bytes.begin(), bytes.end(), expected.begin(), [](std::byte byte, int number) {
    return std::to_integer<int>(byte) == number;
  }));
}

TEST_CASE("top_k keeps at least one value of a block and rounds their number") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  REQUIRE(TopKCodec(0.0001).encoded_bytes(0) == 0);
  REQUIRE(TopKCodec(0.0001).encoded_bytes(1) == 6);
  REQUIRE(TopKCodec(0.0001).encoded_bytes(3 * 4096 + 7) == 4 * 6);
  REQUIRE(TopKCodec(0.5, 5).encoded_bytes(13) == (3 + 3 + 2) * 6);
  REQUIRE(TopKCodec(1.0, 65536).encoded_bytes(100'000) == 600'000);
}

TEST_CASE("top_k of all values loses nothing") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const auto values = wild(10'000);
  REQUIRE(same_bits(sent(TopKCodec(1.0), values), values));
  const auto large = wild(65536);
  REQUIRE(same_bits(sent(TopKCodec(1.0, 65536), large), large));
}

TEST_CASE("top_k keeps its bound") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const double fraction : {0.01, 0.25, 0.9}) {
    const TopKCodec codec(fraction, 100);
    for (const auto& values : {gaussian(10'000), wild(10'000)}) {
      const auto got = sent(codec, values);
      for (std::size_t begin = 0; begin < values.size(); begin += 100) {
        const auto of_block = std::span(values).subspan(begin, 100);
        const double error = squared_distance(of_block, std::span(got).subspan(begin, 100));
        REQUIRE(error <= (1 - fraction) * squared_norm(of_block) * (1 + 1e-12));
      }
    }
  }
}

TEST_CASE("top_k sends what is not finite before anything else") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{1e38F, -kInfinity, 3, std::nanf("")};
  REQUIRE(std::isnan(sent(TopKCodec(0.25), values)[3]));
  REQUIRE(sent(TopKCodec(0.5), values)[1] == -kInfinity);
}

TEST_CASE("top_k refuses offsets outside of the block and blocks that are too large") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const TopKCodec codec(0.1, 16);
  auto bytes = encoded(codec, gaussian(10));
  bytes[4] = std::byte{10};
  std::vector<float> values(10);
  REQUIRE_THROWS_AS(codec.decode(bytes, values), PeerError);
  REQUIRE_THROWS_AS(codec.add_decoded(bytes, 1, values), PeerError);
  REQUIRE_THROWS_WITH(TopKCodec(0.1, 65537), Catch::Contains("sync.codec.block is 65537"));
  REQUIRE_THROWS_AS(TopKCodec(0.0), InternalError);
}
