#include "heterogeneity/policy/round_bound.h"

#include "heterogeneity/policy/policy.h"
#include "tests/heterogeneity/knowledge/known_sites.h"
#include "tests/heterogeneity/policy/known_plans.h"
#include "tests/support/catch.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {
namespace {

using Catch::Contains;

PlanConfig bounded(int64_t base_steps, std::optional<int64_t> most_steps = {},
                   std::optional<double> round_seconds = {}) {
  auto config = plan_config(Policy::kHybrid);
  config.base_steps = base_steps;
  config.most_steps = most_steps;
  config.round_seconds = round_seconds;
  return config;
}

// The times of a sequence at two GPUs and a CPU.
std::vector<SiteKnowledge> office_home_cloud() {
  std::vector<SiteKnowledge> sites;
  for (const auto& [name, seconds] :
       {std::pair{"office", 0.025}, std::pair{"home", 0.06}, std::pair{"cloud", 1.2}}) {
    sites.push_back(site_of(name, {device_of({}, {}, {{64, {}, 64 * seconds}})}));
  }
  return sites;
}

TEST_CASE("a site that is 48 times slower does not make the others take thousands of steps") {
  auto config = bounded(500);
  config.base_batch = 64;
  const auto plan = make_plan(config, office_home_cloud());
  const auto& [office, home, cloud] = std::tie(plan.sites[0], plan.sites[1], plan.sites[2]);
  CHECK(*plan.round_seconds <= 40 * 60);
  CHECK(office.local_steps <= 1250);
  CHECK(office.left_out_steps == 0);
  CHECK(home.left_out_steps == 0);
  CHECK(cloud.left_out_steps == 500 - cloud.local_steps);
  CHECK_THAT(cloud.reason, Contains("leaves out") && Contains("plan.most_steps"));
  // All still end together, to a step of the slowest.
  for (const auto& site : plan.sites) CHECK(*site.idle_seconds < *cloud.step_seconds);
}

TEST_CASE("no plan exceeds its bounds unless one step of a site does") {
  for (const int64_t base_steps : {1, 10, 100, 500}) {
    for (const double slower : {1.0, 3.0, 40.0, 1000.0}) {
      for (const std::optional<double> seconds : {std::optional<double>{}, std::optional{30.0}}) {
        const auto config = bounded(base_steps, 2 * base_steps, seconds);
        const std::vector<SiteKnowledge> sites{timed_site("fast", 0.1), timed_site("between", 0.17),
                                               timed_site("slow", 0.1 * slower)};
        const auto plan = make_plan(config, sites);
        CAPTURE(base_steps, slower, seconds.value_or(0));
        const double step = std::max(0.17, 0.1 * slower);
        const double bound = std::min(seconds.value_or(1e9), 0.2 * static_cast<double>(base_steps));
        CHECK(*plan.round_seconds <= std::max(step, bound) * (1 + 1e-9));
        for (const auto& site : plan.sites) {
          CHECK(site.local_steps >= 1);
          CHECK(site.local_steps <= 2 * base_steps);
          CHECK(site.left_out_steps >= 0);
        }
      }
    }
  }
}

TEST_CASE("a plan within the bounds is the one without them") {
  for (const int64_t base_steps : {25, 50, 100}) {
    const auto sites = paper_sites();
    const auto plan = make_plan(bounded(base_steps), sites);
    CHECK(plan.sites == make_plan(bounded(base_steps, 1'000'000, 1e6), sites).sites);
    for (const auto& site : plan.sites) CHECK(site.left_out_steps == 0);
  }
}

TEST_CASE("sites known by their TFLOPS alone keep the steps, and have no seconds to keep") {
  const auto sites =
      std::vector{site_of("fast", {device_of(1000, {})}), site_of("slow", {device_of(1, {})})};
  const auto plan = make_plan(bounded(100, {}, 1e-6), sites);
  CHECK(plan.sites[0].local_steps == 1000);
  CHECK(plan.sites[1].local_steps == 1);
  CHECK(plan.sites[1].left_out_steps == 99);
}

TEST_CASE("bounds that nothing obeys, or that contradict, are refused with their path") {
  check_round_bound(bounded(100), "run.json");
  check_round_bound(bounded(100, 100, 1.0), "run.json");
  CHECK_THROWS_WITH(check_round_bound(bounded(100, 99), "run.json"),
                    Contains("run.json: plan.most_steps") && Contains("at least plan.base_steps"));
  auto uniform = bounded(100, {}, 60.0);
  uniform.policy = Policy::kUniform;
  CHECK_THROWS_WITH(check_round_bound(uniform, "run.json"),
                    Contains("plan.round_seconds") && Contains("uniform"));
  auto together = bounded(100, 200);
  together.equal_steps = true;
  CHECK_THROWS_WITH(check_round_bound(together, "run.json"), Contains("plan.most_steps"));
}

}  // namespace
}  // namespace farstep::heterogeneity
