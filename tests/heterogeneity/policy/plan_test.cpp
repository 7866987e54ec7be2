#include "heterogeneity/policy/plan.h"

#include "heterogeneity/policy/policy.h"
#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;

namespace {

// What a run file says of the plan.
struct Run {
  std::vector<RunSite> sites;
  PlanConfig plan;
};

Run run_of(std::vector<RunSite> sites) {
  Run run{.sites = std::move(sites), .plan = {}};
  run.plan.micro_batch = 2;
  return run;
}

RoundPlan plan_of(const Run& run) {
  return make_plan(run.plan, sites_of(run.sites));
}

}  // namespace

TEST_CASE("sites take the base work unless the run file gives them their own") {
  const auto plan = plan_of(run_of({{"a", {}, {}, {}}, {"b", 50, 8, 4}, {"c", {}, 6, {}}}));
  const auto& sites = plan.sites;
  REQUIRE(sites.size() == 3);
  REQUIRE((sites[0].local_steps == 100 && sites[0].batch == 4 && sites[0].micro_batch == 2));
  REQUIRE((sites[1].local_steps == 50 && sites[1].batch == 8 && sites[1].micro_batch == 4));
  REQUIRE((sites[2].local_steps == 100 && sites[2].batch == 6 && sites[2].micro_batch == 2));
  REQUIRE(range_begin(plan, 0) == 0);
  REQUIRE(range_begin(plan, 2) == 400 + 400);
  REQUIRE(total_sequences(plan) == 400 + 400 + 600);
  REQUIRE_FALSE(plan.round_seconds);
  REQUIRE_FALSE(total_idle_seconds(plan));
}

TEST_CASE("without a micro-batch the whole batch is one") {
  auto run = run_of({{"a", {}, {}, {}}});
  run.plan.micro_batch.reset();
  REQUIRE(plan_of(run).sites[0].micro_batch == 4);
}

TEST_CASE("a micro-batch above its batch is refused with its JSON path") {
  using Catch::Contains;
  REQUIRE_THROWS_WITH(plan_of(run_of({{"a", {}, {}, {}}, {"b", {}, 4, 5}})),
                      Contains("sites[1].micro_batch"));
  REQUIRE_THROWS_WITH(plan_of(run_of({{"a", {}, 1, {}}})), Contains("plan.micro_batch"));
}

TEST_CASE("a site that serves alone takes all steps, and has no part in the others' plan") {
  const std::vector<RunSite> workers{{"a", {}, 8, {}}, {"b", {}, {}, {}}};
  const auto wanted = plan_of(run_of(workers));
  for (const std::size_t place : {0, 1, 2}) {
    auto sites = workers;
    sites.insert(sites.begin() + static_cast<std::ptrdiff_t>(place), {"hub", {}, {}, {}, false});
    const auto plan = plan_of(run_of(sites));
    REQUIRE(plan.sites.size() == 3);
    const auto& hub = plan.sites[place];
    CHECK((hub.site == "hub" && hub.local_steps == 100 && hub.most_steps == 100));
    CHECK((!hub.trains() && hub.micro_batch == 0 && hub.sequences() == 0));
    CHECK_FALSE(hub.compute_seconds);
    CHECK(num_training(plan) == 2);
    CHECK(total_sequences(plan) == total_sequences(wanted));
    auto others = plan.sites;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(place));
    CHECK(others == wanted.sites);
  }
}

TEST_CASE("an error names a site by its place among all, those that serve alone included") {
  using Catch::Contains;
  REQUIRE_THROWS_WITH(plan_of(run_of({{"hub", {}, {}, {}, false}, {"b", {}, 4, 5}})),
                      Contains("sites[1].micro_batch"));
}

TEST_CASE("hybrid divides the batch of a step among the sites that train") {
  auto run = run_of({{"hub", {}, {}, {}, false}, {"a", {}, {}, {}}, {"b", {}, {}, {}}});
  run.plan.policy = Policy::kHybrid;
  run.plan.base_batch = 9;
  run.plan.equal_steps = true;
  auto sites = sites_of(run.sites);
  sites[1].seen = {.batch = 1, .micro_batch = 1, .seconds = 0.2};
  sites[2].seen = {.batch = 1, .micro_batch = 1, .seconds = 0.1};
  const auto plan = make_plan(run.plan, sites);
  CHECK((plan.sites[0].batch == 0 && plan.sites[1].batch == 6 && plan.sites[2].batch == 12));
  REQUIRE(plan.round_seconds);
  CHECK(*plan.round_seconds == Approx(100 * 1.2));
  REQUIRE(total_idle_seconds(plan));
  CHECK(*total_idle_seconds(plan) == Approx(0).margin(1e-9));
}

TEST_CASE("a policy other than uniform refuses work that the run file gives a site") {
  using Catch::Contains;
  auto run = run_of({{"a", {}, {}, {}}, {"b", 50, {}, {}}});
  for (const auto policy :
       {Policy::kBatchByTflops, Policy::kBatchByMemory, Policy::kStepsByTflops, Policy::kHybrid}) {
    run.plan.policy = policy;
    REQUIRE_THROWS_WITH(plan_of(run), Contains("sites[1].local_steps"));
  }
}

TEST_CASE("a round lasts until the last site is at the sync and the others idle that long") {
  RoundPlan plan;
  for (const double step_seconds : {0.25, 0.5, 0.125}) {
    auto& site = plan.sites.emplace_back();
    site.local_steps = 8;
    site.batch = 1;
    site.step_seconds = step_seconds;
  }
  predict_round(plan, std::vector<double>{0, 0, 4});
  REQUIRE(plan.round_seconds == 5);
  REQUIRE(plan.sites[0].idle_seconds == 3);
  REQUIRE(plan.sites[1].idle_seconds == 1);
  REQUIRE(plan.sites[2].idle_seconds == 0);
  REQUIRE(plan.sites[2].compute_seconds == 1);
  REQUIRE(total_idle_seconds(plan) == 4);

  plan.sites[1].step_seconds.reset();
  predict_round(plan, std::vector<double>{0, 0, 4});
  REQUIRE_FALSE(plan.round_seconds);
  REQUIRE_FALSE(plan.sites[0].idle_seconds);
  REQUIRE_FALSE(plan.sites[1].compute_seconds);
  REQUIRE(plan.sites[0].compute_seconds == 2);
}
