#include "outer_optimizer/codec/feedback.h"

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

// How far the mean of what was sent in `rounds` rounds is from the delta that every round had.
double error_after(const Codec& codec, int rounds, bool feedback) {
  const auto delta = gaussian(4096);
  std::vector<float> residual(delta.size());
  std::vector<float> mean(delta.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec.encoded_bytes(std::ssize(delta))));
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t k = 0; k < delta.size(); ++k) {
      residual[k] = (feedback ? residual[k] : 0) + delta[k];
    }
    encode_with_feedback(codec, residual, bytes, residual);
    codec.add_decoded(bytes, 1.0F / static_cast<float>(rounds), mean);
  }
  return std::sqrt(squared_distance(mean, delta) / squared_norm(delta));
}

}  // namespace

TEST_CASE("feedback sends the codec's bytes and keeps what they lose") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const auto& codec : every_codec()) {
    for (const int64_t size : sizes_for(*codec)) {
      for (const auto& values : {gaussian(size), wild(size)}) {
        INFO(describe(*codec) << ", " << size << " values");
        const auto expected = encoded(*codec, values);
        const auto got = decoded(*codec, expected, values.size());
        std::vector<std::byte> bytes(expected.size());
        std::vector<float> residual(values.size());
        encode_with_feedback(*codec, values, bytes, residual);
        REQUIRE(bytes == expected);
        int64_t wrong = 0;
        for (std::size_t k = 0; k < values.size(); ++k) {
          const double sum = double{got[k]} + double{residual[k]};
          const double rounding = std::abs(double{residual[k]}) * 0x1p-24;
          wrong += residual[k] != values[k] - got[k] || std::abs(sum - values[k]) > rounding;
        }
        REQUIRE(wrong == 0);

        std::vector<float> in_place = values;
        encode_with_feedback(*codec, in_place, bytes, in_place);
        REQUIRE(bytes == expected);
        REQUIRE(same_bits(in_place, residual));
      }
    }
  }
}

TEST_CASE("what was sent over many rounds is the sum of the deltas but for one residual") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  for (const auto& codec : every_codec()) {
    INFO(describe(*codec));
    constexpr int64_t kValues = 1000;
    std::vector<float> residual(kValues);
    std::vector<double> all_sent(kValues);
    std::vector<double> all_deltas(kValues);
    for (unsigned round = 0; round < 50; ++round) {
      const auto delta = gaussian(kValues, round, 1e-3F);
      for (std::size_t k = 0; k < delta.size(); ++k) {
        all_deltas[k] += delta[k];
        residual[k] += delta[k];
      }
      std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_bytes(kValues)));
      encode_with_feedback(*codec, residual, bytes, residual);
      const auto got = decoded(*codec, bytes, kValues);
      for (std::size_t k = 0; k < got.size(); ++k) all_sent[k] += got[k];
    }
    double worst = 0;
    for (std::size_t k = 0; k < residual.size(); ++k) {
      worst = std::max(worst, std::abs(all_sent[k] + residual[k] - all_deltas[k]));
    }
    REQUIRE(worst < 1e-7);  // 50 roundings of residuals of at most 0.02
  }
}

TEST_CASE("with feedback the error of int2 shrinks as one over the rounds") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  const Int2Codec codec;
  const double once = error_after(codec, 1, true);
  REQUIRE(once == Approx(0.34).epsilon(0.05));
  REQUIRE(error_after(codec, 64, false) == Approx(once));
  // The residual grows over the first rounds, to six times what one round loses, and stays there.
  for (const int rounds : {16, 64, 256}) {
    INFO(rounds << " rounds");
    REQUIRE(error_after(codec, rounds, true) < 6.5 * once / rounds);
  }
}

TEST_CASE("a residual of another size is a bug") {
  const Int8Codec codec;
  std::vector<float> values(10);
  std::vector<std::byte> bytes(14);
  std::vector<float> residual(9);
  REQUIRE_THROWS_AS(encode_with_feedback(codec, values, bytes, residual), InternalError);
  residual.resize(10);
  bytes.resize(15);
  REQUIRE_THROWS_AS(encode_with_feedback(codec, values, bytes, residual), InternalError);
}

TEST_CASE("the residual of what is not finite is not finite") {
  FARSTEP_AT_EVERY_INSTRUCTION_SET();
  std::vector<float> values(10, 1.0F);
  values[3] = std::numeric_limits<float>::infinity();
  for (const auto& codec : every_codec()) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(codec->encoded_bytes(10)));
    std::vector<float> residual(10);
    encode_with_feedback(*codec, values, bytes, residual);
    REQUIRE_FALSE(all_finite(residual));
  }
}
