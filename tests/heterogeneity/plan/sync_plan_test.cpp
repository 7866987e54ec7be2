#include "heterogeneity/plan/sync_plan.h"

#include "tests/support/catch.h"

using namespace farstep;

namespace {

// The 150M model at four sites.
SyncFacts facts(double mbit, double rtt_seconds, double step_seconds = 0.15, int64_t steps = 100) {
  return {.parameters = 214'983'680,
          .num_sites = 4,
          .uplink_bits_per_second = mbit * 1e6,
          .rtt_seconds = rtt_seconds,
          .step_seconds = step_seconds,
          .base_steps = steps};
}

SiteKnowledge site(const std::string& name, std::vector<LinkProfile> links,
                   std::vector<StepTime> steps) {
  SiteKnowledge known;
  known.site = name;
  known.profile = SiteProfile{name, std::nullopt, {}, std::move(links)};
  auto& device = known.profile->devices.emplace_back();
  device.name = "device";
  device.step_seconds = std::move(steps);
  return known;
}

}  // namespace

TEST_CASE("a sync takes its bytes through the uplink and three round trips") {
  // 2 * 3/4 of 859.93472 MB at 200 Mbit/s.
  CHECK(fragment_sync_seconds(facts(200, 0.08), CodecKind::kFp32, 1) ==
        Approx(1.5 * 859.93472 / 25 + 0.24));
  CHECK(fragment_sync_seconds(facts(200, 0), CodecKind::kFp32, 4) ==
        Approx(1.5 * 859.93472 / 25 / 4));
  auto alone = facts(200, 0.08);
  alone.num_sites = 1;
  CHECK(fragment_sync_seconds(alone, CodecKind::kFp32, 1) == 0);
}

TEST_CASE("a fast network needs nothing") {
  const auto plan = plan_sync(facts(1e6, 0.0001, 1), 0.05);
  CHECK(plan.codec == CodecKind::kFp32);
  CHECK(plan.fragments == 1);
  CHECK(plan.delay_steps == 0);
  CHECK(plan.exposed_share <= 0.05);
}

TEST_CASE("a slower one gets a smaller codec and then a delay") {
  // int8 alone: 13 s of a round of 1000 s at 200 Mbit/s; fp32 would take 52 s.
  const auto coded = plan_sync(facts(200, 0.08, 1, 1000), 0.02);
  CHECK(coded.codec == CodecKind::kInt8);
  CHECK(coded.delay_steps == 0);
  const auto delayed = plan_sync(facts(100, 0.1), 0.03);
  CHECK(delayed.delay_steps > 0);
  CHECK(delayed.delay_steps * delayed.fragments <= 100);
  CHECK(delayed.exposed_share <= 0.03);
  CHECK_THAT(delayed.reason, Catch::Contains("behind"));
}

TEST_CASE("what cannot be reached is said") {
  const auto plan = plan_sync(facts(1, 0.3), 0.01);
  CHECK(plan.exposed_share > 0.01);
  CHECK(plan.codec == CodecKind::kInt4);
  CHECK_THAT(plan.reason, Catch::Contains("more than the 1.0 % asked for"));
}

TEST_CASE("one site and one step get a plan") {
  auto small = facts(200, 0.08, 0.1, 1);
  CHECK(plan_sync(small, 0.5).fragments == 1);
  small.num_sites = 1;
  const auto alone = plan_sync(small, 0.01);
  CHECK(alone.exposed_seconds == 0);
  CHECK(alone.codec == CodecKind::kFp32);
}

TEST_CASE("long fast links get more connections") {
  CHECK(plan_sync(facts(200, 0.01), 0.05).lanes == 2);
  CHECK(plan_sync(facts(1000, 0.2), 0.05).lanes == 9);
  CHECK(plan_sync(facts(1e5, 0.3), 0.05).lanes == 16);
}

TEST_CASE("facts come from the slowest step and uplink and the longest way") {
  const std::vector<SiteKnowledge> sites{
      site("a", {{"b", 0.08, 2e8}, {"c", 0.2, 1e8}}, {{4, {}, 0.2}}),
      site("b", {{"a", 0.08, 1e9}}, {{4, {}, 0.5}}), site("c", {{"a", 0.21, 3e8}}, {{4, {}, 0.1}})};
  PlanConfig config;
  config.base_steps = 50;
  config.base_batch = 4;
  const auto found = sync_facts(sites, config, 1000);
  REQUIRE(found);
  CHECK(found->parameters == 1000);
  CHECK(found->num_sites == 3);
  CHECK(found->uplink_bits_per_second == 2e8);
  CHECK(found->rtt_seconds == 0.21);
  CHECK(found->step_seconds == Approx(0.5));
  CHECK(found->base_steps == 50);
  auto unknown = sites;
  unknown[1].profile->links.clear();
  CHECK_FALSE(sync_facts(unknown, config, 1000));
  unknown = sites;
  unknown[2].profile->devices[0].step_seconds.clear();
  CHECK_FALSE(sync_facts(unknown, config, 1000));
}
