// The gradient noise that sites measure reaches all of them, and lets the batch of the next round
// grow.
#include <cmath>

#include "tests/support/catch.h"
#include "tests/trainer/round/fake_sites.h"

namespace farstep {
namespace {

struct GrowingRun {
  outer_optimizer::StrategyKind strategy = outer_optimizer::StrategyKind::kLowCommunication;
  int64_t fragments = 1, delay_steps = 0;
  heterogeneity::Policy policy = heterogeneity::Policy::kUniform;
};

const std::vector<GrowingRun> kGrowingRuns{{},
                                           {.fragments = 3, .delay_steps = 2},
                                           {.policy = heterogeneity::Policy::kHybrid},
                                           {outer_optimizer::StrategyKind::kEagerUpdates},
                                           {outer_optimizer::StrategyKind::kRingAllReduce},
                                           {outer_optimizer::StrategyKind::kDataParallelMaster}};

RunConfig run_of(const GrowingRun& kind) {
  auto run = strategy_run(2, kind.fragments, kind.delay_steps, 0, 12);
  run.strategy.kind = kind.strategy;
  run.plan.equal_steps = traits_of(kind.strategy).steps_together;
  if (kind.strategy == outer_optimizer::StrategyKind::kDataParallelMaster) {
    run.sync.exchange = outer_optimizer::ExchangeKind::kParameterServer;
  }
  run.plan.policy = kind.policy;
  run.plan.base_batch = 4;
  run.plan.micro_batch = 2;
  run.outer.rounds = 5;
  return run;
}

// What each site's measured steps show: a squared norm of 2 and 6, a variance of 100 and 140.
void measure(FakeSites& sites) {
  for (std::size_t place = 0; place < sites.sites.size(); ++place) {
    const auto site = static_cast<double>(place);
    sites[place].training.noise_of = [site](const StepOrder& order) {
      const auto examples = static_cast<double>(order.batch);
      return heterogeneity::GradientNoise{examples, examples * (2 + 4 * site),
                                          examples * (100 + 40 * site)};
    };
  }
}

std::vector<int64_t> batches_of(const FakeSite& site) {
  std::vector<int64_t> batches;
  for (const auto& plan : site.events<PlanEvent>()) batches.push_back(plan.batch);
  return batches;
}

TEST_CASE("all sites record one noise scale, of the steps of all") {
  for (const auto& kind : kGrowingRuns) {
    INFO(name_of(kind.strategy) << " of " << kind.fragments << " fragments");
    FakeSites sites(run_of(kind), {0.5, 0.5});
    measure(sites);
    REQUIRE(sites.run() == std::vector<bool>(2, true));
    const auto rounds = sites[0].events<RoundEvent>();
    const auto others = sites[1].events<RoundEvent>();
    REQUIRE(rounds.size() == 5);
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      CHECK(rounds[i].noise_scale == others[i].noise_scale);
      CHECK(rounds[i].gradient_squared_norm == others[i].gradient_squared_norm);
      CHECK(rounds[i].gradient_variance == others[i].gradient_variance);
      // With eager updates the first round's figures come with the second's sync.
      const bool is_known = i > 0 || kind.strategy != outer_optimizer::StrategyKind::kEagerUpdates;
      REQUIRE(rounds[i].noise_scale.has_value() == is_known);
      if (!is_known) continue;
      CHECK(*rounds[i].gradient_squared_norm == Approx(4));
      CHECK(*rounds[i].gradient_variance == Approx(120));
      CHECK(*rounds[i].noise_scale == Approx(30));
    }
  }
}

TEST_CASE("sites whose steps measure nothing record no noise scale, and their batch stays") {
  auto run = run_of({});
  run.plan.batch_growth = heterogeneity::BatchGrowth{.most_batch = 64};
  FakeSites sites(run, {0.5, 0.5});
  REQUIRE(sites.run() == std::vector<bool>(2, true));
  for (const auto& round : sites[0].events<RoundEvent>()) {
    CHECK(!round.noise_scale);
    CHECK(!round.gradient_variance);
  }
  CHECK(batches_of(sites[0]) == std::vector<int64_t>(5, 4));
}

TEST_CASE("the batch of all sites grows to the noise scale, and the learning rate with its root") {
  for (const auto& kind : kGrowingRuns) {
    INFO(name_of(kind.strategy) << " of " << kind.fragments << " fragments");
    auto run = run_of(kind);
    run.plan.batch_growth = heterogeneity::BatchGrowth{
        .most_batch = 64, .learning_rate = heterogeneity::LearningRateRule::kSqrt};
    FakeSites sites(run, {0.5, 0.5});
    measure(sites);
    REQUIRE(sites.run() == std::vector<bool>(2, true));
    // Two sites of 14 are the most of whole micro-batches below 30, and a round doubles at most.
    std::vector<int64_t> expected{4, 8, 14, 14, 14};
    if (kind.strategy == outer_optimizer::StrategyKind::kEagerUpdates) expected = {4, 4, 8, 14, 14};
    const bool is_measured =
        kind.policy == heterogeneity::Policy::kHybrid;  // round 1 is planned twice
    if (is_measured) expected.insert(expected.begin(), 4);
    CHECK(batches_of(sites[0]) == expected);
    CHECK(batches_of(sites[1]) == expected);
    const auto plans = sites[0].events<PlanEvent>();
    CHECK(plans.front().reason.find("grown") == std::string::npos);
    CHECK(plans.back().reason.find("the base batch has grown from 4 to 14") != std::string::npos);
    CHECK(plans.back().micro_batch == 2);
    for (const auto& step : sites[1].events<StepEvent>()) {
      const auto batch = expected[static_cast<std::size_t>(step.round - 1 + is_measured)];
      CHECK(step.tokens == batch);
      const double progress =
          (static_cast<double>(step.round - 1) + static_cast<double>(step.step - 1) / 12) / 5;
      if (kind.policy != heterogeneity::Policy::kUniform) continue;
      CHECK(*step.learning_rate == Approx(progress * std::sqrt(static_cast<double>(batch) / 4)));
    }
    CHECK(sites[0].training.values.size() == sites[1].training.values.size());
    CHECK(sites[0].planner.state() == sites[1].planner.state());
  }
}

TEST_CASE("a run whose batch grows goes on after a stop as if there had been none") {
  for (const auto& kind : kGrowingRuns) {
    // Sites that step together cannot be stopped apart: test_batch_growth.py stops real ones.
    if (traits_of(kind.strategy).steps_together) continue;
    auto run = run_of(kind);
    run.plan.batch_growth = heterogeneity::BatchGrowth{.most_batch = 64};
    FakeSites whole(run, {1, 0.5});
    measure(whole);
    REQUIRE(whole.run() == std::vector<bool>(2, true));
    for (const int64_t step : {1, 6}) {
      INFO(name_of(kind.strategy) << ", stopped in step " << step);
      FakeSites first(run, {1, 0.5}), second(run, {1, 0.5});
      measure(first);
      measure(second);
      std::stop_source stop;
      for (auto& site : first.sites) {
        site->training.before_step = [&](const StepOrder& order) {
          if (order.round == 3 && order.step >= step) stop.request_stop();
        };
      }
      REQUIRE(first.run(stop.get_token()) == std::vector<bool>(2, false));
      for (const std::size_t site : {0, 1}) {
        first[site].trainer.finish();
        first[site].checkpoints.begin(first[site].run);
        second[site].restore(first[site].checkpoints.saved);
      }
      REQUIRE(second.run() == std::vector<bool>(2, true));
      for (const std::size_t site : {0, 1}) {
        CHECK(second[site].training.values == whole[site].training.values);
        CHECK(second[site].planner.state() == whole[site].planner.state());
        CHECK(second[site].events<RoundEvent>().back().noise_scale ==
              whole[site].events<RoundEvent>().back().noise_scale);
        CHECK(batches_of(second[site]).back() == batches_of(whole[site]).back());
      }
    }
  }
}

}  // namespace
}  // namespace farstep
