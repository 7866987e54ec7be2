#include "heterogeneity/policy/policy.h"

#include <array>

#include "tests/heterogeneity/knowledge/known_sites.h"
#include "tests/heterogeneity/policy/known_plans.h"
#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;
using Catch::Contains;

namespace {

std::vector<int64_t> column(const RoundPlan& plan, int64_t SitePlan::*member) {
  std::vector<int64_t> values;
  for (const auto& site : plan.sites) values.push_back(site.*member);
  return values;
}

RoundPlan plan_by(Policy policy, const std::vector<SiteKnowledge>& sites) {
  return make_plan(plan_config(policy), sites);
}

std::string refusal(const PlanConfig& config, const std::vector<SiteKnowledge>& sites) {
  try {
    make_plan(config, sites);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

using Column = std::vector<int64_t>;

}  // namespace

TEST_CASE("policies A and B and C give what Table 2 of Shin et al. has for its Table 1") {
  const auto sites = paper_sites();
  const auto a = plan_by(Policy::kBatchByTflops, sites);
  REQUIRE(column(a, &SitePlan::batch) == Column{4, 4, 6, 5});
  REQUIRE(column(a, &SitePlan::local_steps) == Column{100, 100, 100, 100});
  const auto b = plan_by(Policy::kBatchByMemory, sites);
  REQUIRE(column(b, &SitePlan::batch) == Column{8, 8, 32, 16});
  REQUIRE(column(b, &SitePlan::local_steps) == Column{100, 100, 100, 100});
  const auto c = plan_by(Policy::kStepsByTflops, sites);
  REQUIRE(column(c, &SitePlan::local_steps) == Column{100, 104, 145, 117});
  REQUIRE(column(c, &SitePlan::batch) == Column{4, 4, 4, 4});
}

// Shin et al. print no step times; these follow from Table 2. Node 1 takes 100 steps in the
// baseline and with C, and idles 1.1 and 2.1 s. So the 4 steps that C adds to node 2, the slowest,
// take 1.0 s. The baseline's round is then 100 x 0.25 = 25 s, and a step of any node (25 - its idle
// time) / 100.
//
// From these step times C's idle times follow by arithmetic. The paper prints others for two nodes:
// 8.6 s for node 3, which is 2.32 s less, and 1.9 s for node 4, 0.583 s less. So its two rows do
// not have one step time for node 3: 0.104 s in the baseline, (26 - 8.6) / 145 = 0.120 s with C.
TEST_CASE("idle times follow from step times, where those of policy C are not all the paper's") {
  const std::array<double, 4> baseline{1.1, 0.0, 14.6, 4.9}, printed_of_c{2.1, 0.0, 8.6, 1.9};
  const std::array<int64_t, 4> steps_of_c{100, 104, 145, 117};
  const double slowest = (printed_of_c[0] - baseline[0]) / 4;
  std::array<double, 4> step_seconds{};
  for (std::size_t id = 0; id < 4; ++id) step_seconds[id] = slowest - baseline[id] / 100;

  const auto uniform = plan_by(Policy::kUniform, paper_sites());
  const auto c = plan_by(Policy::kStepsByTflops, paper_sites());
  REQUIRE(*uniform.round_seconds == Approx(25));
  REQUIRE(*c.round_seconds == Approx(26));
  const std::array<double, 4> implied_by_c{2.1, 0.0, 10.92, 2.483};
  for (std::size_t id = 0; id < 4; ++id) {
    REQUIRE(*uniform.sites[id].idle_seconds == Approx(baseline[id]).margin(1e-9));
    REQUIRE(26 - static_cast<double>(steps_of_c[id]) * step_seconds[id] ==
            Approx(implied_by_c[id]).margin(1e-9));
    REQUIRE(*c.sites[id].idle_seconds == Approx(implied_by_c[id]).margin(1e-9));
  }
  REQUIRE(*total_idle_seconds(uniform) == Approx(20.6));
  REQUIRE(*total_idle_seconds(c) == Approx(15.503));
  // 25 % less than the baseline by arithmetic, 39 % less in the paper.
  REQUIRE(*total_idle_seconds(c) - 12.6 == Approx(2.32 + 0.583));
}

TEST_CASE("what a site does besides its steps makes the others wait") {
  auto sites = paper_sites();
  sites[1].overhead_seconds = 3;
  const auto plan = plan_by(Policy::kUniform, sites);
  REQUIRE(*plan.round_seconds == Approx(28));
  REQUIRE(*plan.sites[0].idle_seconds == Approx(4.1));
  REQUIRE(*plan.sites[1].idle_seconds == Approx(0).margin(1e-9));
}

TEST_CASE("micro-batches are no larger than a device's share and memory") {
  auto config = plan_config(Policy::kUniform);
  config.base_batch = 8;
  const auto micro_batch = [&](std::vector<DeviceProfile> devices) {
    return make_plan(config, std::vector{site_of("a", std::move(devices))}).sites[0].micro_batch;
  };
  REQUIRE(micro_batch({device_of({}, {})}) == 8);
  REQUIRE(micro_batch({device_of({}, 3)}) == 3);
  REQUIRE(micro_batch({device_of({}, {}), device_of({}, {}), device_of({}, {})}) == 3);
  REQUIRE(micro_batch({device_of({}, 16), device_of({}, 2)}) == 2);
  config.micro_batch = 4;
  REQUIRE(micro_batch({device_of({}, {})}) == 4);
  REQUIRE(micro_batch({device_of({}, 3)}) == 3);
}

TEST_CASE("a site whose memory holds less than the base batch accumulates it") {
  const auto plan = plan_by(Policy::kBatchByMemory,
                            {site_of("a", {device_of({}, 3)}), site_of("b", {device_of({}, 100)})});
  REQUIRE(column(plan, &SitePlan::batch) == Column{4, 64});
  REQUIRE(column(plan, &SitePlan::micro_batch) == Column{3, 64});
}

TEST_CASE("a policy without its figure names the site and the device and the member") {
  auto sites = paper_sites();
  sites[2].profile->devices[1].name = "A30";
  sites[2].profile->devices[1].fp16_tflops.reset();
  sites[2].profile->devices[1].max_micro_batch.reset();
  for (const auto policy : {Policy::kBatchByTflops, Policy::kStepsByTflops}) {
    REQUIRE_THAT(refusal(plan_config(policy), sites), Contains("plan.policy") &&
                                                          Contains("node3") && Contains("A30") &&
                                                          Contains("fp16_tflops"));
  }
  REQUIRE_THAT(refusal(plan_config(Policy::kBatchByMemory), sites),
               Contains("node3") && Contains("A30") && Contains("max_micro_batch"));
  sites[2].profile.reset();
  for (const auto policy :
       {Policy::kBatchByTflops, Policy::kStepsByTflops, Policy::kBatchByMemory}) {
    REQUIRE_THAT(refusal(plan_config(policy), sites),
                 Contains("node3") && Contains("farstep profile"));
  }
  REQUIRE(refusal(plan_config(Policy::kUniform), sites).empty());
}

TEST_CASE("a device that cannot hold the model takes no part under any policy") {
  auto sites = paper_sites();
  sites[3].profile->devices[2].max_micro_batch = 0;
  sites[3].profile->devices[2].name = "V100";
  for (const auto policy : {Policy::kUniform, Policy::kBatchByTflops, Policy::kBatchByMemory,
                            Policy::kStepsByTflops, Policy::kHybrid}) {
    REQUIRE_THAT(refusal(plan_config(policy), sites), Contains("node4") && Contains("V100"));
    auto small = paper_sites();
    for (auto& site : small) {
      for (auto& device : site.profile->devices) device.max_micro_batch = 0;
    }
    REQUIRE_THAT(refusal(plan_config(policy), small), Contains("no device of any site"));
  }
}

TEST_CASE("a micro-batch above the base batch is refused under any policy") {
  for (const auto policy : {Policy::kUniform, Policy::kBatchByTflops, Policy::kBatchByMemory,
                            Policy::kStepsByTflops, Policy::kHybrid}) {
    auto config = plan_config(policy);
    config.micro_batch = 64;
    REQUIRE_THAT(refusal(config, paper_sites()), Contains("plan.micro_batch: is 64"));
  }
}

TEST_CASE("a round that ends by its deadline has room for more steps than planned") {
  auto config = plan_config(Policy::kUniform);
  const auto most_steps = [&] { return make_plan(config, paper_sites()).sites[0].most_steps; };
  REQUIRE(most_steps() == 100);
  config.round_end = RoundEnd::kDeadline;
  REQUIRE(most_steps() == 126);
  config.base_steps = 1;
  REQUIRE(most_steps() == 3);
}

TEST_CASE("figures that are absurdly far from each other are refused") {
  for (const auto policy : {Policy::kBatchByTflops, Policy::kStepsByTflops, Policy::kHybrid}) {
    const std::vector sites{site_of("a", {device_of(1e-300, {}, {{4, {}, 1e-9}})}),
                            site_of("b", {device_of(100, {}, {{4, {}, 0.25}})})};
    auto unbounded = plan_config(policy);
    unbounded.most_steps = 2 * kMostWork;
    REQUIRE_THAT(refusal(unbounded, sites), Contains("would get"));
  }
  auto config = plan_config(Policy::kUniform);
  config.base_steps = std::numeric_limits<int64_t>::max();
  REQUIRE_THAT(refusal(config, paper_sites()), Contains("would get"));
}

TEST_CASE("one site alone gets the base work under any policy but by memory") {
  for (const auto policy :
       {Policy::kUniform, Policy::kBatchByTflops, Policy::kStepsByTflops, Policy::kHybrid}) {
    const auto plan = plan_by(policy, {paper_sites()[3]});
    REQUIRE(plan.sites[0].local_steps == 100);
    REQUIRE(plan.sites[0].batch == 4);
    REQUIRE(*plan.sites[0].idle_seconds == 0);
    REQUIRE_FALSE(plan.sites[0].reason.empty());
  }
}
