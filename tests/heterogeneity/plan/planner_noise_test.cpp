// Plans whose base batch follows the gradient noise scale.
#include "tests/heterogeneity/plan/fixed_planner.h"
#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {
namespace {

PlanConfig growing(Policy policy, int64_t most_batch = 1000) {
  auto config = plan_config(policy);
  config.base_batch = 4;
  config.micro_batch = 2;
  config.batch_growth = BatchGrowth{.most_batch = most_batch};
  return config;
}

std::vector<int64_t> batches_of(const RoundPlan& plan) {
  std::vector<int64_t> batches;
  for (const auto& site : plan.sites) batches.push_back(site.batch);
  return batches;
}

// A round of the present plan that shows this noise scale.
std::vector<RoundTiming> noisy_round(const RoundPlan& plan, double noise_scale) {
  auto timings =
      timings_of(plan, {kPaperSeconds[0], kPaperSeconds[1], kPaperSeconds[2], kPaperSeconds[3]});
  for (auto& timing : timings) {
    const auto examples = static_cast<double>(timing.batch);
    timing.noise = {examples, examples * 0.5, examples * 0.5 * noise_scale};
  }
  return timings;
}

TEST_CASE("under every policy the batch grows, and the proportions of the sites stay") {
  for (const auto policy : {Policy::kUniform, Policy::kBatchByTflops, Policy::kBatchByMemory,
                            Policy::kStepsByTflops, Policy::kHybrid}) {
    for (const bool replan : {true, false}) {
      auto config = growing(policy);
      config.replan = replan;
      FixedPlanner planner(config, paper_sites());
      const auto before = planner.plan();
      for (int round = 0; round < 8; ++round) {
        planner.observe(noisy_round(planner.plan(), 1e6));
      }
      // Seven rounds double it to 512, and the eighth brings it to the limit.
      config.base_batch = 1000;
      const auto wanted = make_plan(config, paper_sites());
      INFO(name_of(policy));
      CHECK(batches_of(planner.plan()) == batches_of(wanted));
      CHECK(steps_of(planner.plan()).size() == steps_of(before).size());
      for (std::size_t place = 0; place < 4; ++place) {
        const auto& site = planner.plan().sites[place];
        CHECK(site.micro_batch == 2);
        if (policy != Policy::kHybrid) CHECK(site.local_steps == before.sites[place].local_steps);
      }
    }
  }
}

TEST_CASE("hybrid balances sites of a grown batch as of any") {
  for (const bool equal_steps : {false, true}) {
    auto config = growing(Policy::kHybrid);
    config.equal_steps = equal_steps;
    FixedPlanner planner(config, paper_sites());
    for (int round = 0; round < 4; ++round) {
      // Steps take as long as the profiles say for this batch.
      auto timings = noisy_round(planner.plan(), 1e6);
      for (std::size_t place = 0; place < timings.size(); ++place) {
        timings[place].step_seconds = *planner.plan().sites[place].step_seconds;
      }
      planner.observe(timings);
    }
    int64_t all = 0;
    for (const auto batch : batches_of(planner.plan())) all += batch;
    CHECK(all == 4 * 64);
    CHECK(idle_share(planner.plan()) < 0.04);  // of equal work: 0.2
  }
}

TEST_CASE("all sites' batches together stay at the noise scale, and never shrink") {
  FixedPlanner planner(growing(Policy::kUniform), unknown_sites(3));
  planner.observe(noisy_round(planner.plan(), 20));
  CHECK(batches_of(planner.plan()) == std::vector<int64_t>{6, 6, 6});
  planner.observe(noisy_round(planner.plan(), 0));
  planner.observe(noisy_round(planner.plan(), -3));
  CHECK(batches_of(planner.plan()) == std::vector<int64_t>{6, 6, 6});
  // The gradient is not seen above its noise.
  auto lost = noisy_round(planner.plan(), 1e6);
  for (auto& timing : lost) timing.noise.squared_norm *= -100;
  planner.observe(lost);
  CHECK(batches_of(planner.plan()) == std::vector<int64_t>{6, 6, 6});
}

TEST_CASE("without growth the noise is known and the plan stays") {
  auto config = growing(Policy::kUniform);
  config.batch_growth.reset();
  FixedPlanner planner(config, unknown_sites(2));
  const auto timings = noisy_round(planner.plan(), 50);
  CHECK(*planner.planner().noise_with(timings).scale() == Approx(50));
  planner.observe(timings);
  CHECK(batches_of(planner.plan()) == std::vector<int64_t>{4, 4});
  CHECK(planner.planner().learning_rate_factor() == 1);
}

TEST_CASE("a restored planner has the grown batch, also for other members") {
  for (const auto policy : {Policy::kUniform, Policy::kHybrid}) {
    FixedPlanner planner(growing(policy), unknown_sites(3));
    planner.observe(noisy_round(planner.plan(), 60));
    planner.observe(noisy_round(planner.plan(), 60));
    const auto state = planner.state();
    FixedPlanner same(growing(policy), unknown_sites(3));
    same.restore(state);
    CHECK(same.state() == state);
    CHECK(same.plan().sites == planner.plan().sites);
    FixedPlanner fewer(growing(policy), unknown_sites(2));
    fewer.restore(state);
    CHECK(fewer.planner().base_batch() == planner.planner().base_batch());
    CHECK(batches_of(fewer.plan()) == std::vector<int64_t>(2, planner.planner().base_batch()));
  }
  // As written before batches could grow.
  FixedPlanner planner(growing(Policy::kUniform), unknown_sites(2));
  auto state = planner.state();
  state.erase("base_batch");
  state.erase("noise");
  planner.restore(state);
  CHECK(batches_of(planner.plan()) == std::vector<int64_t>{4, 4});
}

}  // namespace
}  // namespace farstep::heterogeneity
