// Rounds that are planned within plan.most_steps and plan.round_seconds while sites change.
#include <algorithm>

#include "heterogeneity/policy/round_length.h"
#include "tests/heterogeneity/plan/fixed_planner.h"
#include "tests/support/catch.h"

namespace farstep::heterogeneity {
namespace {

PlanConfig bounded(double round_seconds) {
  auto config = plan_config(Policy::kHybrid);
  config.round_seconds = round_seconds;
  return config;
}

TEST_CASE("the rest of a measured round ends within the bound of the whole") {
  FixedPlanner planner(bounded(30), unknown_sites(2));
  const auto measured = planner.plan();
  auto timings = timings_of(measured, {0.1, 1.0});
  for (auto& timing : timings) timing.steps = measured.measuring_steps;
  planner.plan_rest(timings);
  const auto& slow = planner.plan().sites[1];
  CHECK(*planner.plan().round_seconds <= 30 * (1 + 1e-9));
  CHECK(*planner.plan().round_seconds > 28);
  CHECK(slow.left_out_steps == 100 - slow.local_steps);
  CHECK_THAT(slow.reason, Catch::Contains("plan.round_seconds") && Catch::Contains("of 100 steps"));
}

TEST_CASE("a measured round whose time is up takes one step more") {
  FixedPlanner planner(bounded(1), unknown_sites(2));
  const auto measured = planner.plan();
  auto timings = timings_of(measured, {0.1, 1.0});
  for (auto& timing : timings) timing.steps = measured.measuring_steps;
  planner.plan_rest(timings);
  CHECK(planner.plan().sites[1].local_steps == measured.measuring_steps + 1);
}

TEST_CASE("a round that would exceed its bound is planned anew, though nobody waits") {
  FixedPlanner planner(bounded(30), unknown_sites(2));
  planner.observe(timings_of(planner.plan(), {0.2, 0.2}));
  CHECK(*planner.plan().round_seconds == Approx(20).epsilon(kRoundTolerance));
  CHECK(planner.plan().sites[0].left_out_steps == 0);
  planner.observe(timings_of(planner.plan(), {0.6, 0.6}));  // all alike, so idle time stays 0
  CHECK(*planner.plan().round_seconds <= 30 * (1 + 1e-9));
  for (const auto& site : planner.plan().sites)
    CHECK(site.left_out_steps == 100 - site.local_steps);
  planner.observe(timings_of(planner.plan(), {0.58, 0.58}));
  const auto steps = steps_of(planner.plan());
  planner.observe(timings_of(planner.plan(), {0.61, 0.61}));  // noise at the bound
  CHECK(steps_of(planner.plan()) == steps);
}

TEST_CASE("a restored planner leaves out the same steps") {
  FixedPlanner planner(bounded(30), unknown_sites(2));
  planner.observe(timings_of(planner.plan(), {0.1, 1.0}));
  REQUIRE(planner.plan().sites[1].left_out_steps > 0);
  FixedPlanner same(bounded(30), unknown_sites(2));
  same.restore(planner.state());
  CHECK(same.plan().sites == planner.plan().sites);
}

}  // namespace
}  // namespace farstep::heterogeneity
