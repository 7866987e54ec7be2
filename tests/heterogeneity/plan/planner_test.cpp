#include "heterogeneity/plan/planner.h"

#include <algorithm>
#include <functional>
#include <random>

#include "tests/heterogeneity/plan/fixed_planner.h"
#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;
using Catch::Contains;

namespace {

// Share of all time that the sites idle if their steps take `seconds`.
double true_idle(const RoundPlan& plan, const std::vector<double>& seconds) {
  double last = 0, sum = 0;
  for (std::size_t id = 0; id < seconds.size(); ++id) {
    const double finish = static_cast<double>(plan.sites[id].local_steps) * seconds[id];
    last = std::max(last, finish);
    sum += finish;
  }
  return 1 - sum / (last * static_cast<double>(seconds.size()));
}

void require_same(const RoundPlan& a, const RoundPlan& b) {
  REQUIRE(a.round_seconds == b.round_seconds);
  REQUIRE(a.sites == b.sites);
}

const std::vector<double> kSeconds(std::begin(kPaperSeconds), std::end(kPaperSeconds));

}  // namespace

TEST_CASE("without profiles a run begins alike and is balanced from its second round on") {
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(4));
  REQUIRE(steps_of(planner.plan()) == std::vector<int64_t>(4, 100));
  REQUIRE_THAT(planner.plan().sites[0].reason,
               Contains("until 4 steps of the round have measured them"));
  planner.observe(timings_of(planner.plan(), kSeconds));
  REQUIRE(true_idle(planner.plan(), kSeconds) < 0.004);
}

TEST_CASE("without profiles the first round is planned again after a few steps") {
  for (const auto& seconds : {kSeconds, std::vector<double>{1, 1, 1, 1}, {0.1, 3, 0.7, 0.2}}) {
    FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(4));
    const auto first = planner.plan();
    const int64_t measuring = first.measuring_steps;
    REQUIRE(measuring == 4);
    CHECK(total_sequences(first) == 4 * measuring * first.sites[0].batch);
    auto timings = timings_of(first, seconds);
    for (auto& timing : timings) timing.steps = measuring;
    planner.plan_rest(timings);

    const auto& plan = planner.plan();
    CHECK(plan.measuring_steps == 0);
    const double slowest = *std::max_element(seconds.begin(), seconds.end());
    double last = 0, sum = 0;  // of the rest, which all begin together
    for (std::size_t id = 0; id < 4; ++id) {
      const auto& site = plan.sites[id];
      CHECK(site.steps_before == measuring);
      CHECK(site.batch == first.sites[id].batch);
      CHECK(site.micro_batch == first.sites[id].micro_batch);
      CHECK(site.sequences() == (site.local_steps - measuring) * site.batch);
      const double rest = static_cast<double>(site.local_steps - measuring) * seconds[id];
      last = std::max(last, rest);
      sum += rest;
    }
    CHECK(1 - sum / (4 * last) < 0.02);
    // No site takes more than the default of plan.most_steps.
    const double fastest = *std::min_element(seconds.begin(), seconds.end());
    CHECK(last == Approx(std::min(96 * slowest, 996 * fastest)).epsilon(0.06));
    for (const auto& site : plan.sites) CHECK(site.local_steps <= 1000);
    CHECK(*plan.round_seconds == Approx(static_cast<double>(measuring) * slowest + last));
    CHECK_THAT(plan.sites[0].reason, Contains("measured in the run"));

    planner.observe(timings_of(plan, seconds));
    CHECK(planner.plan().sites[0].steps_before == 0);
    CHECK(true_idle(planner.plan(), seconds) < 0.02);
  }
}

TEST_CASE("a round of few steps is measured as a whole") {
  for (const int64_t steps : {1, 7, 8}) {
    auto config = plan_config(Policy::kHybrid);
    config.base_steps = steps;
    const FixedPlanner planner(config, unknown_sites(2));
    CHECK(planner.plan().measuring_steps == (steps < 8 ? 0 : 4));
    CHECK(total_sequences(planner.plan()) ==
          2 * std::min<int64_t>(steps, steps < 8 ? steps : 4) * planner.plan().sites[0].batch);
  }
  for (const auto policy : {Policy::kUniform, Policy::kStepsByTflops}) {
    CHECK(FixedPlanner(plan_config(policy), paper_sites()).plan().measuring_steps == 0);
  }
  CHECK(FixedPlanner(plan_config(Policy::kHybrid), paper_sites()).plan().measuring_steps == 0);
}

TEST_CASE("a site that could not be timed keeps the base work for the rest of the round") {
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(2));
  auto timings = timings_of(planner.plan(), {0.5, 0.25});
  timings[1].steps = 0;
  planner.plan_rest(timings);
  CHECK(steps_of(planner.plan()) == std::vector<int64_t>{100, 100});

  FixedPlanner blind(plan_config(Policy::kHybrid), unknown_sites(2));
  for (auto& timing : timings) timing.steps = 0;
  blind.plan_rest(timings);
  CHECK(steps_of(blind.plan()) == std::vector<int64_t>{100, 100});
  CHECK(blind.plan().measuring_steps == 0);
  CHECK(blind.plan().sites[0].steps_before == 4);
}

TEST_CASE("a planner that is restored within the first round goes on with its plan") {
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(4));
  FixedPlanner before(plan_config(Policy::kHybrid), unknown_sites(4));
  before.restore(planner.state());
  CHECK(before.plan().measuring_steps == 4);
  auto timings = timings_of(planner.plan(), kSeconds);
  for (auto& timing : timings) timing.steps = 4;
  planner.plan_rest(timings);
  FixedPlanner after(plan_config(Policy::kHybrid), unknown_sites(4));
  after.restore(planner.state());
  CHECK(after.plan().measuring_steps == 0);
  for (std::size_t id = 0; id < 4; ++id) {
    CHECK(after.plan().sites[id].local_steps == planner.plan().sites[id].local_steps);
    CHECK(after.plan().sites[id].most_steps == planner.plan().sites[id].most_steps);
    CHECK(after.plan().sites[id].steps_before == 4);
  }
  FixedPlanner kept(plan_config(Policy::kHybrid), unknown_sites(4));
  kept.restore(planner.state());
  kept.keep_plan();
  CHECK(kept.plan().sites[0].steps_before == 0);
  CHECK(steps_of(kept.plan()) == steps_of(planner.plan()));
  planner.observe(timings_of(planner.plan(), kSeconds));
  after.observe(timings_of(after.plan(), kSeconds));
  require_same(after.plan(), planner.plan());
}

TEST_CASE("profiles that are wrong are mended by the first round") {
  auto sites = paper_sites();
  for (auto& site : sites) {
    for (auto& device : site.profile->devices) device.step_seconds[0].seconds = 0.02;
  }
  FixedPlanner planner(plan_config(Policy::kHybrid), sites);
  planner.observe(timings_of(planner.plan(), kSeconds));
  REQUIRE(true_idle(planner.plan(), kSeconds) < 0.004);
}

TEST_CASE("a site that changes its speed is planned right in the next round, or the one after") {
  for (const double times : {2.0, 0.5, 1.3, 0.7, 3.9}) {
    FixedPlanner planner(plan_config(Policy::kHybrid), paper_sites());
    for (int round = 0; round < 3; ++round) planner.observe(timings_of(planner.plan(), kSeconds));
    auto seconds = kSeconds;
    seconds[2] *= times;
    planner.observe(timings_of(planner.plan(), seconds));
    // A second round must confirm a fall of more than a third (planner_falls_test.cpp).
    if (times == 0.5) planner.observe(timings_of(planner.plan(), seconds));
    CAPTURE(times);
    REQUIRE(true_idle(planner.plan(), seconds) < 0.02);
    REQUIRE(*planner.plan().sites[2].step_seconds == Approx(seconds[2]).epsilon(0.02));
  }
}

TEST_CASE("a step time changes by a factor of four a round at most") {
  FixedPlanner planner(plan_config(Policy::kHybrid), paper_sites());
  planner.observe(timings_of(planner.plan(), kSeconds));
  auto seconds = kSeconds;
  seconds[0] = 100 * kSeconds[0];
  planner.observe(timings_of(planner.plan(), seconds));
  REQUIRE(*planner.plan().sites[0].step_seconds == Approx(4 * kSeconds[0]));
  seconds[0] = kSeconds[0] / 100;
  planner.observe(timings_of(planner.plan(), seconds));
  planner.observe(timings_of(planner.plan(), seconds));
  REQUIRE(*planner.plan().sites[0].step_seconds == Approx(kSeconds[0]));
}

TEST_CASE("noise of three percent moves the plan little and seldom") {
  std::mt19937 random(13);
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(4));
  int changes = 0;
  double idle_sum = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    auto seconds = kSeconds;
    for (auto& each : seconds) each *= noise(random);
    const auto before = steps_of(planner.plan());
    planner.observe(timings_of(planner.plan(), seconds));
    if (round > 0) changes += before != steps_of(planner.plan());
    idle_sum += true_idle(planner.plan(), kSeconds);
  }
  CAPTURE(changes);
  REQUIRE(idle_sum / kRounds < 0.015);
  REQUIRE(changes < kRounds);
}

TEST_CASE("steps that jitter by three percent hardly move the plan") {
  std::mt19937 random(13);
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(4));
  int changes = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<double> typical;
    for (std::size_t id = 0; id < 4; ++id) {
      std::vector<double> steps(static_cast<std::size_t>(planner.plan().sites[id].local_steps));
      for (auto& seconds : steps) seconds = kSeconds[id] * noise(random);
      typical.push_back(typical_step_seconds(steps));
    }
    const auto before = steps_of(planner.plan());
    planner.observe(timings_of(planner.plan(), typical));
    if (round > 0) changes += before != steps_of(planner.plan());
    REQUIRE(true_idle(planner.plan(), kSeconds) < 0.01);
  }
  CAPTURE(changes);
  REQUIRE(changes <= 10);
}

TEST_CASE("a site that has no part leaves what is known of it") {
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(3));
  const std::vector<double> seconds{0.2, 0.1, 0.4};
  auto timings = timings_of(planner.plan(), seconds);
  timings[1] = {};
  planner.observe(timings);
  REQUIRE_THAT(planner.plan().sites[1].reason, Contains("unknown"));
  REQUIRE_FALSE(planner.plan().round_seconds);
  timings = timings_of(planner.plan(), seconds);
  planner.observe(timings);
  REQUIRE(true_idle(planner.plan(), seconds) < 0.004);
  const auto balanced = steps_of(planner.plan());
  timings[1] = {};
  timings[2].step_seconds = 0;
  for (int round = 0; round < 5; ++round) planner.observe(timings);
  REQUIRE(steps_of(planner.plan()) == balanced);
  for (int round = 0; round < 5; ++round) planner.observe(std::vector<RoundTiming>(3));
  REQUIRE(steps_of(planner.plan()) == balanced);
}

TEST_CASE("without re-planning and under other policies the work stays") {
  for (const auto policy : {Policy::kUniform, Policy::kBatchByTflops, Policy::kBatchByMemory,
                            Policy::kStepsByTflops, Policy::kHybrid}) {
    for (const bool replan : {false, true}) {
      auto config = plan_config(policy);
      config.replan = replan;
      if (policy == Policy::kHybrid && replan) continue;
      FixedPlanner planner(config, paper_sites());
      const auto before = planner.plan();
      planner.observe(timings_of(before, {1, 2, 3, 4}));
      REQUIRE(steps_of(planner.plan()) == steps_of(before));
      if (!replan) require_same(planner.plan(), before);
      if (replan) REQUIRE(*planner.plan().sites[3].step_seconds == 4);
    }
  }
}

TEST_CASE("a policy that lacks its profiles refuses the run") {
  auto config = plan_config(Policy::kHybrid);
  config.replan = false;
  REQUIRE_THROWS_AS(FixedPlanner(config, unknown_sites(2)), ConfigError);
  REQUIRE_THROWS_AS(FixedPlanner(plan_config(Policy::kStepsByTflops), unknown_sites(2)),
                    ConfigError);
}

TEST_CASE("a planner that was saved at any round goes on as the one that was not") {
  std::mt19937 random(17);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  for (const auto policy : {Policy::kUniform, Policy::kStepsByTflops, Policy::kHybrid}) {
    for (const bool with_profiles : {true, false}) {
      if (policy == Policy::kStepsByTflops && !with_profiles) continue;
      auto config = plan_config(policy);
      config.round_end = with_profiles ? RoundEnd::kDeadline : RoundEnd::kSteps;
      const auto sites = with_profiles ? paper_sites() : unknown_sites(4);
      FixedPlanner planner(config, sites);
      for (int round = 0; round < 20; ++round) {
        FixedPlanner resumed(config, sites);
        resumed.restore(Json::parse(planner.state().dump()));
        require_same(resumed.plan(), planner.plan());
        REQUIRE(resumed.state() == planner.state());
        auto seconds = kSeconds;
        for (auto& each : seconds) each *= noise(random);
        auto timings = timings_of(planner.plan(), seconds);
        timings[1].overhead_seconds = 0.1 * noise(random);
        if (round % 3 == 0) timings[2] = {};
        planner.observe(timings);
        resumed.observe(timings);
        require_same(resumed.plan(), planner.plan());
      }
    }
  }
}

TEST_CASE("a state of another shape is bad data") {
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(3));
  const auto state = planner.state();
  REQUIRE_THROWS_AS(planner.restore(Json::array()), DataError);
  REQUIRE_THROWS_AS(planner.restore(Json::object()), DataError);
  auto broken = state;
  broken["sites"][0]["local_steps"] = 0;
  REQUIRE_THROWS_AS(planner.restore(broken), DataError);
  planner.restore(state);
}

TEST_CASE("one site is never idle and a thousand sites are balanced") {
  FixedPlanner alone(plan_config(Policy::kHybrid), unknown_sites(1));
  for (const double seconds : {0.1, 0.4, 0.05}) {
    alone.observe(timings_of(alone.plan(), {seconds}));
    REQUIRE(steps_of(alone.plan()) == std::vector<int64_t>{100});
    REQUIRE(alone.plan().sites[0].idle_seconds == 0);
  }
  std::mt19937 random(19);
  std::uniform_real_distribution<double> step(0.1, 0.4);
  std::vector<double> seconds(1000);
  for (auto& each : seconds) each = step(random);
  FixedPlanner planner(plan_config(Policy::kHybrid), unknown_sites(1000));
  planner.observe(timings_of(planner.plan(), seconds));
  REQUIRE(true_idle(planner.plan(), seconds) < 0.005);
}

TEST_CASE("links are learned when they differ by more than noise and survive a restart") {
  FixedPlanner planner(plan_config(Policy::kUniform), unknown_sites(2));
  auto timings = timings_of(planner.plan(), {0.1, 0.1});
  const auto learn = [&](double uplink, double rtt_seconds) {
    timings[1].uplink_bits_per_second = uplink;
    timings[1].rtt_seconds = rtt_seconds;
    planner.observe(timings);
    return planner.sites()[1].seen_links;
  };
  CHECK_FALSE(learn(0, 0).uplink_bits_per_second);
  CHECK(learn(1e7, 0.1).uplink_bits_per_second == 1e7);
  CHECK(learn(1.19e7, 0.085).uplink_bits_per_second == 1e7);
  CHECK(learn(0.81e7, 0.119).rtt_seconds == 0.1);
  CHECK(learn(1.21e7, 0.13).uplink_bits_per_second == 1.21e7);
  CHECK(learn(0, 0).rtt_seconds == 0.13);
  CHECK_FALSE(planner.sites()[0].seen_links.uplink_bits_per_second);
  FixedPlanner resumed(plan_config(Policy::kUniform), unknown_sites(2));
  resumed.restore(planner.state());
  CHECK(resumed.sites()[1].seen_links.uplink_bits_per_second == 1.21e7);
  CHECK(resumed.sites()[1].seen_links.rtt_seconds == 0.13);
  CHECK_FALSE(resumed.sites()[0].seen_links.rtt_seconds);
  CHECK(resumed.state() == planner.state());
}

TEST_CASE("a round that a leaving site cuts short tells nothing of its speed") {
  for (const auto policy : {Policy::kUniform, Policy::kHybrid}) {
    FixedPlanner planner(plan_config(policy), unknown_sites(3));
    for (int round = 0; round < 2; ++round) {
      planner.observe(timings_of(planner.plan(), {0.1, 0.2, 0.3}));
    }
    FixedPlanner without(plan_config(policy), unknown_sites(3));
    without.restore(planner.state());
    auto timings = timings_of(planner.plan(), {0.1, 0.2, 0.3});
    timings[1].uplink_bits_per_second = 1e7;
    auto cut = timings;
    cut[1].steps = 1;
    cut[1].step_seconds = 5;
    cut[1].overhead_seconds = 7;
    cut[1].is_leaving = true;
    planner.observe(cut);
    timings[1].steps = 0;
    without.observe(timings);
    CHECK(planner.state() == without.state());
    CHECK(planner.sites()[1].seen_links.uplink_bits_per_second == 1e7);
  }
}
