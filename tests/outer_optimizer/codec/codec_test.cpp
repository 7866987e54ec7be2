#include "outer_optimizer/codec/codec.h"

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

}  // namespace

TEST_CASE("fp32 gives back every bit") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const Fp32Codec codec;
  const std::vector<float> special{
      0.0F, -0.0F, Limits::denorm_min(), Limits::max(), Limits::infinity(), Limits::quiet_NaN(),
      -1.5F};
  for (std::size_t size = 0; size <= special.size(); ++size) {
    const auto values = std::span(special).first(size);
    REQUIRE(same_bits(sent(codec, values), values));
  }
}

TEST_CASE("only fp32 is without loss") {
  for (const auto& codec : every_codec()) REQUIRE(codec->is_lossy() == (codec->name() != "fp32"));
}

TEST_CASE("a buffer of another size is a bug") {
  for (const auto& codec : every_codec()) {
    INFO(describe(*codec));
    std::vector<float> values(3);
    std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_bytes(3)) + 1);
    REQUIRE_THROWS_AS(codec->encode(values, bytes), InternalError);
    REQUIRE_THROWS_AS(codec->decode(bytes, values), InternalError);
    REQUIRE_THROWS_AS(codec->add_decoded(bytes, 1, values), InternalError);
  }
}

TEST_CASE("pieces of whole blocks encode to the bytes of the whole") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const auto& codec : every_codec()) {
    for (const int64_t size : sizes_for(*codec)) {
      INFO(describe(*codec) << ", " << size << " values");
      const auto values = gaussian(size);
      const auto whole = encoded(*codec, values);
      for (int64_t cut = 0; cut <= size; cut += codec->block_values()) {
        auto pieces = encoded(*codec, std::span(values).first(static_cast<std::size_t>(cut)));
        const auto rest = encoded(*codec, std::span(values).subspan(static_cast<std::size_t>(cut)));
        pieces.insert(pieces.end(), rest.begin(), rest.end());
        REQUIRE(pieces == whole);
      }
    }
  }
}

TEST_CASE("every instruction set writes the same bytes and reads the same values") {
  const auto sets = vector_code_sets();
  for (const auto& codec : every_codec()) {
    for (const int64_t size : sizes_for(*codec)) {
      for (const auto& values : value_sets(size)) {
        std::vector<std::byte> first_bytes;
        std::vector<float> first_values;
        for (const auto set : sets) {
          INFO(describe(*codec) << ", " << size << " values, instructions: " << name_of(set));
          const InstructionLimit limit(set);
          const auto bytes = encoded(*codec, values);
          const auto got = decoded(*codec, bytes, values.size());
          if (set == sets.front()) {
            first_bytes = bytes;
            first_values = got;
          }
          REQUIRE(bytes == first_bytes);
          REQUIRE(same_values(got, first_values));
        }
      }
    }
  }
}

TEST_CASE("adding decoded values has the bits of a multiplication and an addition") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const auto& codec : every_codec()) {
    for (const int64_t size : sizes_for(*codec)) {
      const auto bytes = encoded(*codec, gaussian(size));
      const auto values = decoded(*codec, bytes, static_cast<std::size_t>(size));
      for (const float coefficient : {1.0F / 3, -1.0F, 0.0F}) {
        INFO(describe(*codec) << ", " << size << " values times " << coefficient);
        auto sum = gaussian(size, 2);
        if (size > 1) sum[1] = -0.0F;
        auto expected = sum;
        for (std::size_t k = 0; k < values.size(); ++k) {
          const float product = coefficient * values[k];
          expected[k] = expected[k] + product;
        }
        codec->add_decoded(bytes, coefficient, sum);
        REQUIRE(same_bits(sum, expected));
      }
    }
  }
}

TEST_CASE("finite values of every shape decode to finite ones") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const auto& codec : every_codec()) {
    for (const auto& shape : finite_shapes()) {
      for (const int64_t size : sizes_for(*codec)) {
        INFO(describe(*codec) << ", " << size << " values, " << shape.name);
        const auto values = shaped(shape, size);
        const auto got = sent(*codec, values);
        REQUIRE(all_finite(got));
        REQUIRE(squared_distance(values, got) <= squared_norm(values));
      }
    }
  }
}

TEST_CASE("a hundred thousand values and one arrive") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const auto& codec : every_codec()) {
    INFO(describe(*codec));
    const auto values = gaussian(100'001);
    const auto got = sent(*codec, values);
    REQUIRE(all_finite(got));
    REQUIRE(squared_distance(values, got) < squared_norm(values));
  }
}

TEST_CASE("zeros decode to zeros") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const auto& codec : every_codec()) {
    for (const int64_t size : sizes_for(*codec)) {
      INFO(describe(*codec) << ", " << size << " values");
      REQUIRE(squared_norm(sent(*codec, std::vector<float>(static_cast<std::size_t>(size)))) == 0);
    }
  }
}

TEST_CASE("a value that is not finite is never hidden and stays in its block") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const std::vector<float> bad{Limits::quiet_NaN(), -Limits::quiet_NaN(),
                               std::bit_cast<float>(0x7f800001), Limits::infinity(),
                               -Limits::infinity()};
  for (const auto& codec : every_codec()) {
    const auto block = static_cast<std::size_t>(codec->block_values());
    const auto values = gaussian(static_cast<int64_t>(3 * block));
    const auto good = sent(*codec, values);
    for (const float value : bad) {
      for (const std::size_t place : {block, block + block / 2, 2 * block - 1}) {
        INFO(describe(*codec) << ", " << value << " at " << place);
        auto spoilt = values;
        spoilt[place] = value;
        const auto got = sent(*codec, spoilt);
        REQUIRE_FALSE(all_finite(std::span(got).subspan(block, block)));
        REQUIRE(same_bits(std::span(got).first(block), std::span(good).first(block)));
        REQUIRE(same_bits(std::span(got).last(block), std::span(good).last(block)));
      }
    }
  }
}

TEST_CASE("every instruction set gives the same bits") {
  for (const auto& codec : every_codec()) {
    for (const int64_t size : sizes_for(*codec)) {
      for (const auto& values : value_sets(size)) {
        std::vector<std::byte> bytes;
        std::vector<float> received, sum;
        for (const auto set : vector_code_sets()) {
          INFO(describe(*codec) << ", " << size << " values, " << name_of(set));
          const InstructionLimit limit(set);
          const auto own_bytes = encoded(*codec, values);
          const auto own_received = decoded(*codec, own_bytes, values.size());
          auto own_sum = gaussian(size, 2);
          codec->add_decoded(own_bytes, 1.0F / 3, own_sum);
          if (set == InstructionSet::kBaseline) {
            bytes = own_bytes;
            received = own_received;
            sum = own_sum;
          }
          REQUIRE(own_bytes == bytes);
          REQUIRE(same_bits(own_received, received));
          REQUIRE(same_bits(own_sum, sum));
        }
      }
    }
  }
}
