#include "heterogeneity/knowledge/round_timing.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/base/error.h"

using namespace farstep;
using namespace farstep::heterogeneity;

TEST_CASE("equal steps of any number take what each takes") {
  for (const std::size_t count : {1, 2, 3, 4, 5, 100, 1001}) {
    REQUIRE(typical_step_seconds(std::vector<double>(count, 0.25)) == Approx(0.25));
  }
  REQUIRE_THROWS_AS(typical_step_seconds({}), InternalError);
}

TEST_CASE("a hiccup is not seen wherever it is") {
  for (const std::size_t count : {3, 4, 8, 101}) {
    for (std::size_t hiccup = 0; hiccup < count; ++hiccup) {
      std::vector<double> steps(count, 0.25);
      steps[hiccup] = 30;
      REQUIRE(typical_step_seconds(steps) == Approx(0.25));
    }
  }
}

TEST_CASE("a site that slows down in the first half is seen in full") {
  std::vector<double> steps(100, 0.2);
  for (std::size_t i = 50; i < 100; ++i) steps[i] = 0.4;
  REQUIRE(typical_step_seconds(steps) == Approx(0.4));
}

TEST_CASE("a site that gets faster is believed after a whole round") {
  std::vector<double> steps(100, 0.2);
  for (std::size_t i = 50; i < 100; ++i) steps[i] = 0.1;
  REQUIRE(typical_step_seconds(steps) == Approx(0.15));
  REQUIRE(typical_step_seconds(std::vector<double>(100, 0.1)) == Approx(0.1));
}

TEST_CASE("what comes often is no hiccup") {
  std::vector<double> steps(100, 0.1);
  for (std::size_t i = 0; i < 100; i += 4) steps[i] = 0.5;
  // The ten longest are left out, of both halves alike.
  REQUIRE(typical_step_seconds(steps) == Approx((75 * 0.1 + 15 * 0.5) / 90).epsilon(0.02));
}

TEST_CASE("noise averages out") {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  std::vector<double> steps(1000);
  for (auto& seconds : steps) seconds = 0.1 * noise(random);
  REQUIRE(typical_step_seconds(steps) == Approx(0.1).epsilon(0.01));
}

TEST_CASE("a step is taken if it ends by the deadline or within the slack") {
  REQUIRE(has_room_for_step(10, 9, 1, 0));
  REQUIRE_FALSE(has_room_for_step(10, 9.25, 1, 0));
  REQUIRE(has_room_for_step(10, 9.25, 1, 0.25));
  REQUIRE_FALSE(has_room_for_step(10, 9.5, 1, 0.25));
  REQUIRE_FALSE(has_room_for_step(10, 12, 0.1, 0.25));
}

TEST_CASE("a start, which makes steps longer, does not count in what they measure") {
  CHECK(measured_step_seconds(std::vector<double>{9, 2}) == 2);
  CHECK(measured_step_seconds(std::vector<double>{9, 2, 2, 2}) == 2);
  CHECK(measured_step_seconds(std::vector<double>{9, 8, 2, 2}) == 2);
  CHECK(measured_step_seconds(std::vector<double>{9, 8, 3, 2}) == 2);
  CHECK(measured_step_seconds(std::vector<double>{9, 8, 2, 30}) == 2);  // a hiccup
  CHECK_THROWS_AS(measured_step_seconds(std::vector<double>{9}), InternalError);
}
