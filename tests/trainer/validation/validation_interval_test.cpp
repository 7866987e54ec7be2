#include "trainer/validation/validation_interval.h"

#include "tests/support/catch.h"

using namespace farstep;

TEST_CASE("validation is due as often as it costs one percent of the training at most") {
  constexpr int64_t kRound = 564;
  for (const int64_t examples : {1, 2, 64, 1000}) {
    int64_t validations = 0;
    constexpr int64_t kRounds = 5000;
    for (int64_t round = 0; round < kRounds; ++round) {
      validations += is_validation_due(round * kRound, (round + 1) * kRound, examples);
    }
    const double cost = static_cast<double>(validations * examples) / 3;
    const double share = cost / static_cast<double>(kRounds * kRound);
    CAPTURE(examples);
    CHECK(share <= kValidationShare);
    // Not rarer than it must be: every round, if rounds are long.
    CHECK((validations == kRounds || share > 0.99 * kValidationShare));
  }
  CHECK(!is_validation_due(0, 0, 64));
  CHECK(is_validation_due(0, 1'000'000, 64));
}
