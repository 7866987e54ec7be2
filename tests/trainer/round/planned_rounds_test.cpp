// Rounds whose work follows from what the sites' steps took.
#include "tests/support/catch.h"
#include "tests/trainer/round/trained_windows.h"

namespace farstep {
namespace {

RunConfig planned_run(int num_sites) {
  auto run = strategy_run(num_sites, 1, 0, 0, 20);
  run.outer.rounds = 4;
  run.data.sequence_length = 8;
  run.plan.policy = heterogeneity::Policy::kHybrid;
  run.plan.base_batch = 1;
  return run;
}

double seconds_of(const std::vector<StepEvent>& steps, int64_t round) {
  double seconds = 0;
  for (const auto& step : steps) seconds += step.round == round ? step.seconds : 0;
  return seconds;
}

TEST_CASE("unknown sites are measured and then work equally long") {
  const auto run = planned_run(3);
  FakeSites sites(run, {1, 0.5, 0.25});
  CHECK(sites.run() == std::vector<bool>(3, true));
  for (auto& site : sites.sites) {
    const auto plans = site->events<PlanEvent>();
    REQUIRE(plans.size() == 5);  // the first round has two
    CHECK(plans[0].local_steps == 20);
    CHECK(site->run.position.measuring_syncs == 1);
    CHECK(site->strategy->syncs_done() == 4);
    const auto steps = site->events<StepEvent>();
    for (const int64_t round : {2, 3, 4}) {
      CHECK(seconds_of(steps, round) ==
            Approx(seconds_of(sites[0].events<StepEvent>(), round)).epsilon(0.03));
    }
  }
  CHECK(sites[2].events<RoundEvent>().back().local_steps == 4 * 20);
}

TEST_CASE("all sites plan the same") {
  auto run = planned_run(3);
  run.plan.critical_batch = 12;
  FakeSites sites(run, {1, 0.5, 0.3});
  sites[1].training.before_step = [&](const StepOrder& order) {
    if (order.round == 3) sites[1].training.step_seconds = 0.9;  // it slows down
  };
  CHECK(sites.run() == std::vector<bool>(3, true));
  for (const auto& site : sites.sites) {
    CHECK(site->planner.state() == sites[0].planner.state());
  }
  CHECK(are_windows_whole(sites));
}

TEST_CASE("a round by deadline ends when its time is up whatever the steps take") {
  auto run = planned_run(2);
  run.plan.round_end = heterogeneity::RoundEnd::kDeadline;
  FakeSites sites(run, {1, 1});
  auto& slow = sites[1].training;
  slow.before_step = [&](const StepOrder& order) {
    if (order.round == 2 && order.step == 8) slow.step_seconds = 2;
  };
  CHECK(sites.run() == std::vector<bool>(2, true));
  CHECK(slow.steps.size() < sites[0].training.steps.size());
  CHECK(are_windows_whole(sites));
  // Seven steps of 1 s and seven of 2 s are a round of 20 s and a little; one more would be late.
  CHECK(seconds_of(sites[1].events<StepEvent>(), 2) == Approx(20).margin(1.01));
  CHECK(seconds_of(sites[0].events<StepEvent>(), 2) == Approx(20));
}

TEST_CASE("a site that trained by another plan is named") {
  auto run = planned_run(2);
  run.plan.policy = heterogeneity::Policy::kUniform;
  auto other = run;
  other.plan.base_batch = 2;
  FakeSites sites(std::vector{run, other}, {1, 1});
  const auto outcomes = wan::run_ranks(2, [&](int site) -> std::string {
    try {
      run_rounds(sites[static_cast<std::size_t>(site)].run, {});
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  });
  CHECK_THAT(outcomes[0], Catch::Contains("site s1 did 20 steps of 2 in round 1"));
  CHECK_THAT(outcomes[1], Catch::Contains("site s0 did 20 steps of 1 in round 1"));
}

}  // namespace
}  // namespace farstep
