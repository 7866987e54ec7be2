#include "heterogeneity/plan/sync_plan.h"

#include <set>
#include <tuple>

#include "tests/support/catch.h"
#include "wan/link/lanes.h"

using namespace farstep;
using namespace farstep::heterogeneity;

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

TEST_CASE("a sync takes its bytes through the uplink and three round trips and some memory") {
  // 2 * 3/4 of 859.93472 MB at 200 Mbit/s, and 5 ns a value.
  constexpr double kWork = 5e-9 * 214'983'680;
  CHECK(fragment_sync_seconds(facts(200, 0.08), outer_optimizer::CodecKind::kFp32, 1) ==
        Approx(1.5 * 859.93472 / 25 + 0.24 + kWork));
  CHECK(fragment_sync_seconds(facts(200, 0), outer_optimizer::CodecKind::kFp32, 4) ==
        Approx((1.5 * 859.93472 / 25 + kWork) / 4));
  auto alone = facts(200, 0.08);
  alone.num_sites = 1;
  CHECK(fragment_sync_seconds(alone, outer_optimizer::CodecKind::kFp32, 1) == 0);
}

TEST_CASE("a fast network needs nothing") {
  const auto plan = plan_sync(facts(1e6, 0.0001, 1), 0.05);
  CHECK(plan.codec == outer_optimizer::CodecKind::kFp32);
  CHECK(plan.fragments == 1);
  CHECK(plan.delay_steps == 0);
  CHECK(plan.exposed_share <= 0.05);
}

TEST_CASE("a slower one gets a smaller codec and then a delay") {
  // int8 alone: 13 s of a round of 1000 s at 200 Mbit/s; fp32 would take 52 s.
  const auto coded = plan_sync(facts(200, 0.08, 1, 1000), 0.02);
  CHECK(coded.codec == outer_optimizer::CodecKind::kInt8);
  CHECK(coded.delay_steps == 0);
  const auto delayed = plan_sync(facts(150, 0.1), 0.03);
  CHECK(delayed.delay_steps > 0);
  CHECK(delayed.delay_steps * delayed.fragments <= 100);
  CHECK(delayed.exposed_share <= 0.03);
  CHECK_THAT(delayed.reason, Catch::Contains("behind"));
}

TEST_CASE("what cannot be reached is said") {
  const auto plan = plan_sync(facts(1, 0.3), 0.01);
  CHECK(plan.exposed_share > 0.01);
  CHECK(plan.codec == outer_optimizer::CodecKind::kInt2);
  CHECK_THAT(plan.reason, Catch::Contains("more than the 1.0 % asked for"));
}

TEST_CASE("one site and one step get a plan") {
  auto small = facts(200, 0.08, 0.1, 1);
  CHECK(plan_sync(small, 0.5).fragments == 1);
  small.num_sites = 1;
  const auto alone = plan_sync(small, 0.01);
  CHECK(alone.exposed_seconds == 0);
  CHECK(alone.codec == outer_optimizer::CodecKind::kFp32);
  CHECK(alone.reason == "one site sends its delta to no other");
}

TEST_CASE("a plan has the connections that its links need") {
  CHECK(plan_sync(facts(200, 0.01), 0.05).lanes == wan::lanes_for(4, 2e8, 0.01));
  CHECK(plan_sync(facts(1000, 0.2), 0.05).lanes == wan::lanes_for(4, 1e9, 0.2));
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

TEST_CASE("what the run has seen of links goes before the profile") {
  std::vector<SiteKnowledge> sites{site("a", {{"b", 0.08, 2e8}}, {{4, {}, 0.2}}),
                                   site("b", {{"a", 0.08, 1e9}}, {{4, {}, 0.5}})};
  sites[0].seen_links = {5e7, 0.15};
  const auto found = sync_facts(sites, PlanConfig{}, 1000);
  REQUIRE(found);
  CHECK(found->uplink_bits_per_second == 5e7);
  CHECK(found->rtt_seconds == 0.15);
  for (auto& each : sites) each.profile.reset();
  CHECK_FALSE(sync_facts(sites, PlanConfig{}, 1000));
  for (auto& each : sites) {
    each.seen = SeenStep{4, 4, 0.3};
    each.seen_links.uplink_bits_per_second = 1e7;
  }
  const auto seen = sync_facts(sites, PlanConfig{}, 1000);
  REQUIRE(seen);
  CHECK(seen->uplink_bits_per_second == 1e7);
  CHECK(seen->step_seconds == Approx(0.3));
}

TEST_CASE("connections are known as soon as all uplinks are") {
  std::vector<SiteKnowledge> sites(2);
  CHECK_FALSE(lanes_for(sites));
  for (auto& each : sites) each.seen_links = {1e9, 0.2};
  CHECK(lanes_for(sites) == 16);
  CHECK_FALSE(lanes_for(std::span(sites).first(1)));
}

TEST_CASE("a sync that misses the target is replaced by one that keeps it on a slower line too") {
  for (const double mbit : {3.0, 10.0, 30.0, 100.0, 300.0, 1000.0}) {
    for (const double rtt_seconds : {0.0, 0.02, 0.1, 0.3}) {
      const auto now = facts(mbit, rtt_seconds);
      CAPTURE(mbit, rtt_seconds);
      const auto change = better_sync(now, 0.05, {});
      if (!change) continue;
      CHECK(change->exposed_share < 1);
      auto slower = now;
      slower.uplink_bits_per_second *= 0.8;
      if (plan_sync(slower, 0.05).exposed_share > 0.05) continue;  // nothing keeps it
      CHECK(change->exposed_share <= 0.05);
      CHECK_FALSE(better_sync(now, 0.05, changed_to({}, *change)));
      CHECK_FALSE(better_sync(slower, 0.05, changed_to({}, *change)));
    }
  }
}

TEST_CASE("figures that vary by less than a fifth never make a choice go and come back") {
  for (const double mbit : {5.0, 20.0, 80.0, 130.0, 200.0, 320.0, 500.0, 2000.0}) {
    outer_optimizer::SyncConfig now;
    std::set<std::tuple<outer_optimizer::CodecKind, int64_t, int64_t>> had;
    CAPTURE(mbit);
    for (int round = 0; round < 40; ++round) {
      const double factor = 1 + 0.1 * ((round * 7) % 5 - 2) / 2.0;  // from 0.9 to 1.1
      const auto change = better_sync(facts(mbit * factor, 0.08), 0.05, now);
      if (!change) continue;
      had.emplace(now.codec.kind, now.fragments, now.delay_steps);
      now = changed_to(now, *change);
      CHECK_FALSE(had.contains({now.codec.kind, now.fragments, now.delay_steps}));
    }
    CHECK(had.size() <= 2);
  }
}

TEST_CASE("a line that became fast gets back what was given up for a slow one") {
  const auto slow = better_sync(facts(50, 0.08), 0.05, {});
  REQUIRE(slow);
  REQUIRE(slow->delay_steps > 0);
  const auto now = changed_to({}, *slow);
  const auto fast = better_sync(facts(100e3, 0.001, 0.5), 0.05, now);
  REQUIRE(fast);
  CHECK(fast->delay_steps == 0);
  CHECK(fast->codec == outer_optimizer::CodecKind::kFp32);
}

TEST_CASE("a change leaves everything else of the sync alone") {
  outer_optimizer::SyncConfig now;
  now.codec = {.kind = outer_optimizer::CodecKind::kInt8, .block = 64, .error_feedback = false};
  now.alpha = 0.25;
  now.lanes = 3;
  const auto same = changed_to(
      now, {.codec = outer_optimizer::CodecKind::kInt8, .fragments = 4, .delay_steps = 5});
  CHECK(same.codec.block == 64);
  CHECK(same.fragments == 4);
  CHECK(same.delay_steps == 5);
  CHECK(same.alpha == 0.25);
  CHECK(same.lanes == 3);
  const auto other = changed_to(now, {.codec = outer_optimizer::CodecKind::kInt4});
  CHECK(other.codec.kind == outer_optimizer::CodecKind::kInt4);
  CHECK_FALSE(other.codec.block);
  CHECK(other.codec.error_feedback == false);
}
