#include "heterogeneity/policy/hybrid.h"

#include "heterogeneity/policy/round_length.h"
#include "tests/heterogeneity/knowledge/known_sites.h"
#include "tests/heterogeneity/policy/known_plans.h"
#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;
using Catch::Contains;

namespace {

RoundPlan hybrid(const std::vector<SiteKnowledge>& sites, int64_t base_steps = 100,
                 std::optional<int64_t> critical_batch = {}) {
  auto config = plan_config(Policy::kHybrid);
  config.base_steps = base_steps;
  config.critical_batch = critical_batch;
  return make_plan(config, sites);
}

}  // namespace

TEST_CASE("the paper's sites idle for far less than a percent under hybrid") {
  for (const int64_t base_steps : {100, 50, 25}) {
    const auto plan = hybrid(paper_sites(), base_steps);
    CAPTURE(base_steps, idle_share(plan));
    REQUIRE(idle_share(plan) < 0.004);
    for (const auto& site : plan.sites) REQUIRE(site.batch == 4);
    REQUIRE(*plan.round_seconds ==
            Approx(0.25 * static_cast<double>(base_steps)).epsilon(kRoundTolerance));
  }
}

TEST_CASE("sites of which one is four times as fast are all busy") {
  const auto plan = hybrid({timed_site("slow", 0.4), timed_site("fast", 0.1),
                            timed_site("between", 0.17), timed_site("like it", 0.23)});
  for (const auto& site : plan.sites) {
    REQUIRE(*site.idle_seconds < 0.02 * *plan.round_seconds);
  }
  REQUIRE(idle_share(plan) < 0.004);
}

TEST_CASE("a site that does more besides its steps gets fewer of them") {
  auto sites = std::vector{timed_site("a", 0.25), timed_site("b", 0.25)};
  sites[1].overhead_seconds = 5;
  const auto plan = hybrid(sites);
  REQUIRE(plan.sites[0].local_steps - plan.sites[1].local_steps == 20);
  REQUIRE(idle_share(plan) == Approx(0).margin(1e-9));
}

TEST_CASE("step times seen in the run go before the profile and the reason says so") {
  auto sites = std::vector{timed_site("a", 0.25), timed_site("b", 0.25)};
  sites[1].seen = SeenStep{4, 4, 0.125};
  const auto plan = hybrid(sites);
  REQUIRE(plan.sites[1].local_steps == 2 * plan.sites[0].local_steps);
  REQUIRE_THAT(plan.sites[0].reason,
               Contains("0.25 s a step from its profile: 100 steps of 4 fill the 25 s round"));
  REQUIRE_THAT(plan.sites[1].reason, Contains("0.125 s a step, measured in the run: 200 steps"));
}

TEST_CASE("sites that step together share the batch by their speeds") {
  auto config = plan_config(Policy::kHybrid);
  config.equal_steps = true;
  std::vector<SiteKnowledge> sites;
  for (const double seconds : kPaperSeconds) {
    sites.push_back(timed_site("node" + std::to_string(sites.size()), seconds));
  }
  for (const int64_t base_batch : {1, 2, 4, 16, 64}) {
    config.base_batch = base_batch;
    const auto plan = make_plan(config, sites);
    CAPTURE(base_batch);
    int64_t batches = 0;
    std::vector<double> seconds;
    for (std::size_t id = 0; id < plan.sites.size(); ++id) {
      const auto& work = plan.sites[id];
      REQUIRE(work.local_steps == config.base_steps);
      REQUIRE(work.batch >= 1);
      REQUIRE(work.micro_batch <= work.batch);
      batches += work.batch;
      seconds.push_back(kPaperSeconds[id] / 4 * static_cast<double>(work.batch));
      REQUIRE(*work.step_seconds == Approx(seconds.back()));
    }
    REQUIRE(batches == 4 * base_batch);
    // No sequence can move to another site and make the longest step shorter; the last one stays.
    double longest = 0;
    for (std::size_t id = 0; id < seconds.size(); ++id) {
      if (plan.sites[id].batch > 1) longest = std::max(longest, seconds[id]);
    }
    for (std::size_t id = 0; id < seconds.size(); ++id) {
      REQUIRE(seconds[id] + kPaperSeconds[id] / 4 >= longest - 1e-9);
    }
  }
  // The paper's baseline waits for 20.6 % of the time.
  config.base_batch = 64;
  REQUIRE(idle_share(make_plan(config, sites)) < 0.01);
}

TEST_CASE("sites of unknown speed keep the base batch among those that step together") {
  auto config = plan_config(Policy::kHybrid);
  config.equal_steps = true;
  config.base_batch = 6;
  auto plan = make_plan(
      config, std::vector{timed_site("slow", 0.4), unknown_site("new"), timed_site("fast", 0.2)});
  REQUIRE(plan.sites[0].batch == 4);
  REQUIRE(plan.sites[1].batch == 6);
  REQUIRE(plan.sites[2].batch == 8);
  // By TFLOPS alone too.
  plan = make_plan(
      config, std::vector{site_of("a", {device_of(100, {})}), site_of("b", {device_of(200, {})})});
  REQUIRE(plan.sites[0].batch == 4);
  REQUIRE(plan.sites[1].batch == 8);
}

TEST_CASE("a site without step times is compared by its TFLOPS") {
  auto sites = std::vector{site_of("a", {device_of(100, {}, {{4, {}, 0.25}})}),
                           site_of("b", {device_of(200, {})})};
  const auto plan = hybrid(sites);
  REQUIRE(*plan.sites[1].step_seconds == Approx(0.125));
  REQUIRE(plan.sites[1].local_steps == 200);
  REQUIRE_THAT(plan.sites[1].reason, Contains("about 0.125 s") && Contains("2.00 times a's"));
  REQUIRE(idle_share(plan) == Approx(0).margin(1e-9));
}

TEST_CASE("TFLOPS alone give steps in proportion and no seconds") {
  auto sites = paper_sites();
  for (auto& site : sites) {
    for (auto& device : site.profile->devices) device.step_seconds.clear();
  }
  const auto plan = hybrid(sites);
  const double ratios[] = {1, 1.03559, 1.44991, 1.17311};
  for (std::size_t id = 0; id < sites.size(); ++id) {
    const auto& site = plan.sites[id];
    REQUIRE(static_cast<double>(site.local_steps) ==
            Approx(ratios[id] * static_cast<double>(plan.sites[0].local_steps)).margin(1.01));
    REQUIRE_FALSE(site.step_seconds);
    REQUIRE_FALSE(site.idle_seconds);
  }
  REQUIRE_FALSE(plan.round_seconds);
  REQUIRE_THAT(plan.sites[2].reason, Contains("its TFLOPS, 1.45 times node1's"));
}

TEST_CASE("a site of which nothing is known gets the base work and is measured") {
  const auto plan = hybrid({timed_site("a", 0.25), unknown_site("b"), timed_site("c", 0.125)});
  REQUIRE(plan.sites[1].local_steps == 100);
  REQUIRE(plan.sites[1].batch == 4);
  REQUIRE_THAT(plan.sites[1].reason, Contains("unknown"));
  REQUIRE(plan.sites[2].local_steps == 200);
  REQUIRE_FALSE(plan.sites[0].idle_seconds);
  REQUIRE(plan.sites[0].compute_seconds);
}

TEST_CASE("hybrid without any knowledge is refused with what to do") {
  REQUIRE_THROWS_WITH(hybrid({unknown_site("a"), unknown_site("b")}),
                      Contains("plan.policy") && Contains("farstep profile"));
}

TEST_CASE("batches are raised within the critical batch while that brings tokens a second") {
  // 0.1 s a step and 0.01 s a sequence: doubling pays until far above the cap.
  const auto rich = [](std::optional<int64_t> max_micro_batch) {
    return site_of("a", {device_of({}, max_micro_batch, {{4, {}, 0.14}, {8, {}, 0.18}})});
  };
  // In proportion to the batch: nothing to gain.
  const auto poor = site_of("b", {device_of({}, 64, {{4, {}, 0.4}, {8, {}, 0.8}})});

  const auto kept = hybrid({rich(64), poor});
  REQUIRE(kept.sites[0].batch == 4);
  const auto raised = hybrid({rich(64), poor}, 100, 64);
  REQUIRE(raised.sites[0].batch == 32);
  REQUIRE(raised.sites[0].micro_batch == 32);
  REQUIRE(raised.sites[1].batch == 4);
  REQUIRE(idle_share(raised) < 0.02);
  REQUIRE_THAT(raised.sites[0].reason, Contains("2.67 times the tokens/s of batch 4"));
  // Memory for 16: accumulated, since only the step itself costs extra.
  REQUIRE(hybrid({rich(16), poor}, 100, 64).sites[0].micro_batch == 16);
  // The cap goes before the base batch.
  const auto capped = hybrid({rich(64), poor}, 100, 5);
  REQUIRE((capped.sites[0].batch == 2 && capped.sites[1].batch == 2));
  REQUIRE(hybrid({rich(64), poor}, 100, 1).sites[0].batch == 1);
}

TEST_CASE("raised batches keep the samples of the slowest site") {
  const auto site = site_of("a", {device_of({}, 64, {{4, {}, 0.14}, {8, {}, 0.18}})});
  const auto plan = hybrid({site}, 100, 16);
  REQUIRE(plan.sites[0].batch == 16);
  REQUIRE(plan.sites[0].local_steps == 25);
  REQUIRE(hybrid({site}, 1, 16).sites[0].local_steps == 1);
}

TEST_CASE("micro-batches leave no small remainder where even ones take no more passes") {
  const auto slow_pass = [](int64_t max_micro_batch) {
    return site_of("a", {device_of({}, max_micro_batch,
                                   {{1, {}, 0.15}, {2, {}, 0.2}, {2, 4, 0.35}, {1, 4, 0.45}})});
  };
  auto config = plan_config(Policy::kHybrid);
  config.base_batch = 6;
  const auto micro_batch = [&](int64_t most) {
    return make_plan(config, std::vector{slow_pass(most)}).sites[0].micro_batch;
  };
  REQUIRE(micro_batch(6) == 6);
  REQUIRE(micro_batch(5) == 3);
  REQUIRE(micro_batch(4) == 3);
  REQUIRE(micro_batch(2) == 2);
  config.micro_batch = 2;
  REQUIRE(micro_batch(6) == 2);
  REQUIRE(micro_batch(1) == 1);
}

TEST_CASE("unequal devices of a site share its batch in the prediction") {
  // Alone they take 0.1 s and 0.2 s for four; three of four go to the faster.
  const auto site = site_of("a", {device_of({}, 8, {{2, {}, 0.05}, {4, {}, 0.1}}),
                                  device_of({}, 8, {{2, {}, 0.1}, {4, {}, 0.2}})});
  const auto plan = hybrid({site});
  REQUIRE(*plan.sites[0].step_seconds == Approx(0.075));
  REQUIRE(plan.sites[0].micro_batch == 3);
}
