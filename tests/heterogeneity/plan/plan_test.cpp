#include "heterogeneity/plan/plan.h"

#include "tests/support/catch.h"

using namespace farstep;

namespace {

RunConfig run_of(std::vector<RunSite> sites) {
  RunConfig run;
  run.sites = std::move(sites);
  run.plan = {.base_steps = 100, .base_batch = 4, .micro_batch = 2};
  return run;
}

}  // namespace

TEST_CASE("sites take the base work unless the run file gives them their own") {
  const auto plan =
      uniform_plan(run_of({{"a", {}, {}, {}}, {"b", 50, 8, 4}, {"c", {}, 6, {}}}), "run.json");
  REQUIRE(plan.size() == 3);
  REQUIRE((plan[0].local_steps == 100 && plan[0].batch == 4 && plan[0].micro_batch == 2));
  REQUIRE((plan[1].local_steps == 50 && plan[1].batch == 8 && plan[1].micro_batch == 4));
  REQUIRE((plan[2].local_steps == 100 && plan[2].batch == 6 && plan[2].micro_batch == 2));
  REQUIRE(range_begin(plan, 0) == 0);
  REQUIRE(range_begin(plan, 2) == 400 + 400);
  REQUIRE(total_sequences(plan) == 400 + 400 + 600);
}

TEST_CASE("without a micro-batch the whole batch is one") {
  auto run = run_of({{"a", {}, {}, {}}});
  run.plan.micro_batch.reset();
  REQUIRE(uniform_plan(run, "run.json")[0].micro_batch == 4);
}

TEST_CASE("a micro-batch above its batch is refused with its JSON path") {
  using Catch::Contains;
  REQUIRE_THROWS_WITH(uniform_plan(run_of({{"a", {}, {}, {}}, {"b", {}, 4, 5}}), "run.json"),
                      Contains("run.json: sites[1].micro_batch"));
  REQUIRE_THROWS_WITH(uniform_plan(run_of({{"a", {}, 1, {}}}), "run.json"),
                      Contains("run.json: plan.micro_batch"));
}
