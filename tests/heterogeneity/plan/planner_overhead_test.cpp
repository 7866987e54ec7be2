// What the planner learns of a site's time besides its steps.
#include "heterogeneity/plan/planner.h"
#include "tests/heterogeneity/plan/fixed_planner.h"
#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;

TEST_CASE("time besides the steps is learned and its mean is planned with") {
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(2));
  const std::vector<double> seconds{0.25, 0.25};
  for (int round = 0; round < 12; ++round) {
    auto timings = timings_of(planner.plan(), seconds);
    timings[1].overhead_seconds = 5;
    planner.observe(timings);
    REQUIRE(planner.plan().sites[0].local_steps - planner.plan().sites[1].local_steps == 20);
  }
}

TEST_CASE("one long interruption of a site changes the others' work little") {
  const std::vector<double> seconds{0.25, 0.25};
  for (const int rounds_before : {0, 1, 5}) {
    FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(2));
    for (int round = 0; round < rounds_before; ++round) {
      planner.observe(timings_of(planner.plan(), seconds));
    }
    auto timings = timings_of(planner.plan(), seconds);
    timings[1].overhead_seconds = 3600;
    planner.observe(timings);
    const auto steps = steps_of(planner.plan());
    CHECK(steps[1] == 100);
    CHECK(steps[0] >= 100);
    CHECK(steps[0] <= 125);
    for (int round = 0; round < 8; ++round) {
      planner.observe(timings_of(planner.plan(), seconds));
    }
    CHECK(steps_of(planner.plan())[0] == steps_of(planner.plan())[1]);
    CHECK(steps_of(planner.plan())[0] <= 110);
  }
}

TEST_CASE("time besides the steps that is longer than they are is known after a few rounds") {
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(2));
  for (int round = 0; round < 12; ++round) {
    auto timings = timings_of(planner.plan(), {0.25, 0.25});
    timings[1].overhead_seconds = 100;
    planner.observe(timings);
  }
  const auto steps = steps_of(planner.plan());
  CHECK(static_cast<double>(steps[0] - steps[1]) == Approx(400).epsilon(0.02));

  // And it is forgotten.
  for (int round = 0; round < 12; ++round) {
    planner.observe(timings_of(planner.plan(), {0.25, 0.25}));
  }
  CHECK(steps_of(planner.plan())[0] == steps_of(planner.plan())[1]);
  CHECK(steps_of(planner.plan())[0] <= 110);
}
