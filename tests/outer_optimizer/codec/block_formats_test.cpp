#include "outer_optimizer/codec/block_formats.h"

#include "outer_optimizer/codec/feedback.h"
#include "tests/outer_optimizer/codec/every_codec.h"
#include "tests/support/catch.h"
#include "tests/support/every_instruction_set.h"

namespace farstep::outer_optimizer {
namespace {

// The lanes of a GPU, one after another: each does its own part, and in its own order.
struct LanesInTurn {
  template <typename Action>
  void for_each(int64_t n, const Action& action) const {
    for (int lane = 0; lane < kLanes; ++lane) for_each_of_lane(lane, n, action);
  }
  template <typename Term>
  int32_t largest(int64_t n, const Term& term) const {
    int32_t largest = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      largest = std::max(largest, largest_of_lane(lane, n, term));
    }
    return largest;
  }
  template <typename Term>
  float sum(int64_t n, const Term& term) const {
    float sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += sum_of_lane(lane, n, term);
    return sum;
  }
};

struct Encoded {
  std::vector<std::byte> bytes;
  std::vector<float> residual, decoded;
};

// What the functions that kernels run make of `values`.
template <typename Format>
Encoded encode_in_lanes(const Codec& codec, const std::vector<float>& values) {
  const LanesInTurn lanes;
  Encoded result{
      std::vector<std::byte>(static_cast<std::size_t>(codec.encoded_bytes(std::ssize(values)))),
      std::vector<float>(values.size()), std::vector<float>(values.size())};
  std::byte* bytes = result.bytes.data();
  for (int64_t begin = 0; begin < std::ssize(values); begin += codec.block_values()) {
    const int64_t size = std::min(codec.block_values(), std::ssize(values) - begin);
    const float* own = values.data() + begin;
    const auto format = encode_block<Format>(lanes, own, bytes, size);
    decode_block<Format>(lanes, bytes, size, [&](int64_t k, float value) {
      result.decoded[static_cast<std::size_t>(begin + k)] = value;
      result.residual[static_cast<std::size_t>(begin + k)] = own[k] - sent_value(format, own[k]);
    });
    bytes += Format::kScaleBytes + code_bytes<Format>(size);
  }
  return result;
}

template <typename Format>
void compare_with(const Codec& codec) {
  for (const int64_t size : sizes_for(codec)) {
    for (const auto& values : value_sets(size)) {
      INFO(describe(codec) << ", " << size << " values");
      const auto in_lanes = encode_in_lanes<Format>(codec, values);
      std::vector<std::byte> bytes(in_lanes.bytes.size());
      std::vector<float> residual(values.size());
      encode_with_feedback(codec, values, bytes, residual);
      REQUIRE(in_lanes.bytes == bytes);
      REQUIRE(same_values(in_lanes.residual, residual));
      REQUIRE(same_values(in_lanes.decoded, decoded(codec, bytes, values.size())));
    }
  }
}

TEST_CASE("int8 in the lanes of a GPU has the bytes of the vectorised codec") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t block : {256, 1, 7, 33}) compare_with<Int8Format>(Int8Codec(block));
}

TEST_CASE("int4 in the lanes of a GPU has the bytes of the vectorised codec") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t block : {160, 2, 34, 130}) compare_with<Int4Format>(Int4Codec(block));
}

TEST_CASE("int2 in the lanes of a GPU has the bytes of the vectorised codec") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const int64_t block : {512, 4, 36, 132}) compare_with<Int2Format>(Int2Codec(block));
}

TEST_CASE("a block that is not finite has a scale of fixed bits and codes of zero") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto bytes = encode_in_lanes<Int8Format>(Int8Codec(4), {1, infinity, 2, 3}).bytes;
  const std::vector<std::byte> expected{std::byte{0},    std::byte{0}, std::byte{0xc0},
                                        std::byte{0x7f}, std::byte{0}, std::byte{0},
                                        std::byte{0},    std::byte{0}};
  CHECK(bytes == expected);
}

}  // namespace
}  // namespace farstep::outer_optimizer
