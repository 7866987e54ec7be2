// Step times that fall: what one round shows, a second one must confirm.
#include <random>

#include "tests/heterogeneity/plan/fixed_planner.h"
#include "tests/support/catch.h"

namespace farstep::heterogeneity {
namespace {

const std::vector<double> kUsual{0.05, 0.11, 0.342};

// Returns the usual times with another one of the last site.
std::vector<double> with_last(double seconds) {
  auto times = kUsual;
  times.back() = seconds;
  return times;
}

PlanConfig config_of(int64_t base_steps) {
  auto config = plan_config(Policy::kHybrid);
  config.base_steps = base_steps;
  return config;
}

FixedPlanner settled(int64_t base_steps = 19) {
  FixedPlanner planner(config_of(base_steps), unknown_sites(3));
  for (int round = 0; round < 3; ++round) planner.observe(timings_of(planner.plan(), kUsual));
  return planner;
}

double last_step(const FixedPlanner& planner) {
  return *planner.plan().sites.back().step_seconds;
}

// Three sites on a machine with a load of 50: after rounds of 19 steps of 0.342 s the last site's
// round showed less than a quarter. It was planned 68 steps, took 0.342 s for each again, and the
// others waited 31 and 36 s.
TEST_CASE("one round in which a site seems four times as fast does not make the others wait") {
  auto planner = settled();
  const auto steps = steps_of(planner.plan());
  planner.observe(timings_of(planner.plan(), with_last(0.08)));
  CHECK(steps_of(planner.plan()) == steps);
  CHECK(last_step(planner) == Approx(0.342));
  planner.observe(timings_of(planner.plan(), kUsual));
  CHECK(steps_of(planner.plan()) == steps);
  // The next such round is the first one again.
  planner.observe(timings_of(planner.plan(), with_last(0.08)));
  CHECK(last_step(planner) == Approx(0.342));
}

TEST_CASE("two rounds in a row are believed, and the longer time of both counts") {
  for (const auto& [first, second] : {std::pair{0.12, 0.15}, std::pair{0.15, 0.12}}) {
    auto planner = settled();
    planner.observe(timings_of(planner.plan(), with_last(first)));
    planner.observe(timings_of(planner.plan(), with_last(second)));
    CHECK(last_step(planner) == Approx(0.15));
  }
}

TEST_CASE("a fall of at most a third, and any rise, count at once") {
  for (const double times : {0.7, 0.9, 1.3, 2.0, 3.9}) {
    auto planner = settled();
    planner.observe(timings_of(planner.plan(), with_last(times * 0.342)));
    CHECK(last_step(planner) == Approx(times * 0.342));
  }
}

TEST_CASE("the first whole round corrects what its first steps showed at once") {
  FixedPlanner planner(config_of(19), unknown_sites(3));
  auto timings = timings_of(planner.plan(), with_last(1.2));
  for (auto& timing : timings) timing.steps = planner.plan().measuring_steps;
  planner.plan_rest(timings);
  CHECK(last_step(planner) == Approx(1.2));
  planner.observe(timings_of(planner.plan(), kUsual));
  CHECK(last_step(planner) == Approx(0.342));
}

TEST_CASE("rounds that look short now and then never make a site's plan too long") {
  std::mt19937 random(7);
  auto planner = settled();
  bool was_short = false;
  for (int round = 0; round < 200; ++round) {
    const bool is_short = !was_short && random() % 3 == 0;
    planner.observe(timings_of(planner.plan(), with_last(is_short ? 0.342 / 5 : 0.342)));
    CHECK(last_step(planner) > 0.342 * 0.99);
    was_short = is_short;
  }
}

TEST_CASE("a planner that is restored after a fall waits for the second one") {
  auto planner = settled();
  planner.observe(timings_of(planner.plan(), with_last(0.12)));
  FixedPlanner same(config_of(19), unknown_sites(3));
  same.restore(planner.state());
  CHECK(same.state() == planner.state());
  for (auto* each : {&planner, &same}) each->observe(timings_of(each->plan(), with_last(0.12)));
  CHECK(same.plan().sites == planner.plan().sites);
  CHECK(last_step(same) == Approx(0.12));
}

}  // namespace
}  // namespace farstep::heterogeneity
