#include "heterogeneity/policy/round_length.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;

TEST_CASE("sites reach the sync within a step of each other and within the round's bounds") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> log_seconds(-2, 1);
  std::uniform_real_distribution<double> share(0, 0.3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Pace> paces(static_cast<std::size_t>(1 + trial % 17));
    const int64_t base_steps = std::vector<int64_t>{1, 2, 10, 25, 100, 500}[trial % 6];
    double target = 0, longest = 0;
    for (auto& pace : paces) {
      pace.step_seconds = std::pow(10.0, log_seconds(random));
      pace.overhead_seconds = trial % 2 == 0 ? 0 : share(random) * pace.step_seconds * 10;
      const double one = pace.overhead_seconds + pace.step_seconds;
      const double all =
          pace.overhead_seconds + static_cast<double>(base_steps) * pace.step_seconds;
      longest = std::max(longest, one);
      target = std::max(target, all);
    }
    const auto steps = steps_to_meet(paces, target);
    REQUIRE(steps.size() == paces.size());
    double last = 0, sum = 0, plain_sum = 0;
    for (std::size_t i = 0; i < paces.size(); ++i) {
      REQUIRE(steps[i] >= 1);
      const auto& pace = paces[i];
      const double finish =
          pace.overhead_seconds + static_cast<double>(steps[i]) * pace.step_seconds;
      last = std::max(last, finish);
      sum += finish;
      plain_sum += pace.overhead_seconds +
                   std::floor((target - pace.overhead_seconds) / pace.step_seconds + 1e-9) *
                       pace.step_seconds;
    }
    const auto n = static_cast<double>(paces.size());
    REQUIRE(last <= std::max(target * (1 + kRoundTolerance), longest) * (1 + 1e-9));
    REQUIRE(last >= target * (1 - kRoundTolerance) * (1 - 1e-9));
    for (std::size_t i = 0; i < paces.size(); ++i) {
      const double finish =
          paces[i].overhead_seconds + static_cast<double>(steps[i]) * paces[i].step_seconds;
      REQUIRE(last - finish < paces[i].step_seconds * (1 + 1e-6));
    }
    // No worse than not to search for the end of the round at all.
    REQUIRE(1 - sum / (n * last) <= 1 - plain_sum / (n * target) + 1e-6);
  }
}

TEST_CASE("a round is at least one step of the slowest site long") {
  const std::vector<Pace> paces{{0, 1}, {0, 30}};
  REQUIRE(steps_to_meet(paces, 10) == std::vector<int64_t>{30, 1});
}

TEST_CASE("a site alone and equal sites end with the target") {
  for (const int64_t steps : {1, 7, 100}) {
    for (const std::size_t count : {1, 2, 1000}) {
      const std::vector<Pace> paces(count, {0.5, 0.25});
      REQUIRE(steps_to_meet(paces, 0.5 + 0.25 * static_cast<double>(steps)) ==
              std::vector<int64_t>(count, steps));
    }
  }
}
