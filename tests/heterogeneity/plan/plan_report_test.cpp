#include "heterogeneity/plan/plan_report.h"

#include "tests/heterogeneity/knowledge/known_sites.h"
#include "tests/heterogeneity/policy/known_plans.h"
#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;
using Catch::Contains;

namespace {

ForecastSettings settings_of(Policy policy, outer_optimizer::AveragingRule averaging =
                                                outer_optimizer::AveragingRule::kBatch) {
  ForecastSettings settings;
  settings.plan = plan_config(policy);
  settings.averaging = averaging;
  return settings;
}

}  // namespace

TEST_CASE("the JSON of a plan has the members that scripts rely on") {
  const auto plan = make_plan(plan_config(Policy::kStepsByTflops), paper_sites());
  const auto json = plan_json(
      forecast_of(settings_of(Policy::kStepsByTflops, outer_optimizer::AveragingRule::kTokens),
                  paper_sites(), plan));
  REQUIRE(json["policy"] == "steps_by_tflops");
  REQUIRE(json["sites"].size() == 4);
  double weights = 0;
  for (std::size_t id = 0; id < 4; ++id) {
    const auto& site = json["sites"][id];
    REQUIRE(site["site"] == plan.sites[id].site);
    REQUIRE(site["local_steps"] == plan.sites[id].local_steps);
    REQUIRE(site["batch"] == 4);
    REQUIRE(site["micro_batch"] == 1);
    REQUIRE(site["predicted_compute_seconds"] == *plan.sites[id].compute_seconds);
    REQUIRE(site["predicted_idle_seconds"] == *plan.sites[id].idle_seconds);
    REQUIRE(site["averaging_weight"].get<double>() ==
            Approx(static_cast<double>(plan.sites[id].local_steps) / 466));
    weights += site["averaging_weight"].get<double>();
  }
  REQUIRE(weights == Approx(1));
  REQUIRE(json["predicted_total_idle_seconds"] == *total_idle_seconds(plan));
}

TEST_CASE("seconds that are not known are null and a dash") {
  const auto plan = make_plan(plan_config(Policy::kUniform), std::vector{unknown_site("alone")});
  const auto forecast =
      forecast_of(settings_of(Policy::kUniform), std::vector{unknown_site("alone")}, plan);
  const auto json = plan_json(forecast);
  REQUIRE(json["sites"][0]["predicted_compute_seconds"].is_null());
  REQUIRE(json["sites"][0]["predicted_idle_seconds"].is_null());
  REQUIRE(json["predicted_total_idle_seconds"].is_null());
  REQUIRE(json["tokens_per_second"].is_null());
  REQUIRE(json["run"].is_null());
  REQUIRE_THAT(plan_text(forecast), Contains("not known"));
  REQUIRE(forecast_line(forecast).empty());
}

TEST_CASE("the table has a line a site and a line that says why") {
  const auto plan = make_plan(plan_config(Policy::kHybrid), paper_sites());
  const auto text = plan_text(forecast_of(settings_of(Policy::kHybrid), paper_sites(), plan));
  for (const auto& site : plan.sites) {
    REQUIRE_THAT(text,
                 Contains("\n" + site.site + "  ") && Contains(site.site + "  " + site.reason));
  }
  REQUIRE_THAT(text, Contains("Plan of a round by hybrid"));
}

TEST_CASE("a sync's plan has the names of the run file") {
  SyncPlan plan;
  plan.codec = outer_optimizer::CodecKind::kInt4;
  plan.fragments = 4;
  const auto json = sync_json(plan);
  CHECK(json.at("codec").at("kind") == "int4");
  CHECK(json.at("fragments") == 4);
  outer_optimizer::SyncConfig config;
  for (const auto* name : {"codec", "lanes", "fragments", "delay_steps"}) {
    CHECK(to_json(config).contains(name));
    CHECK(json.contains(name));
  }
}
