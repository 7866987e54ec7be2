#include "heterogeneity/plan/sync_choice.h"

#include <numeric>

#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;
using Catch::Contains;

namespace {

constexpr int64_t kParameters = 5'000'000;

// Sites whose steps take 0.2 s, with uplinks as given; 0 is not known.
std::vector<SiteKnowledge> sites(const std::vector<double>& mbits) {
  std::vector<SiteKnowledge> known;
  for (const double mbit : mbits) {
    auto& site = known.emplace_back();
    site.site = "site" + std::to_string(known.size());
    site.seen = SeenStep{4, 4, 0.2};
    if (mbit > 0) site.seen_links = {mbit * 1e6, 0.08};
  }
  return known;
}

struct Run {
  PlanConfig plan;
  outer_optimizer::SyncConfig sync;
};

Run run_of(std::optional<double> target,
           outer_optimizer::SharesRule shares = outer_optimizer::SharesRule::kEqual) {
  Run run;
  run.plan.base_steps = 50;
  run.plan.wan_target = target;
  run.sync.shares = shares;
  return run;
}

}  // namespace

TEST_CASE("nothing changes that nobody asked to change") {
  const auto run = run_of(std::nullopt);
  CHECK_FALSE(
      change_of_sync(run.plan, run.sync.shares, sites({1, 1, 1}), kParameters, run.sync, {}));
}

TEST_CASE("a slow line gets a sync that keeps the target") {
  const auto run = run_of(0.05);
  const auto known = sites({100, 20});
  const auto change = change_of_sync(run.plan, run.sync.shares, known, kParameters, run.sync, {});
  REQUIRE(change);
  CHECK(change->shares.empty());
  CHECK_THAT(change->reason, Contains("20 Mbit/s") && Contains("would expose"));
  // What was chosen stays, and the rest of the config with it.
  CHECK_FALSE(change_of_sync(run.plan, run.sync.shares, known, kParameters, change->sync, {}));
  CHECK(change->sync.alpha == run.sync.alpha);
  CHECK(change->sync.lanes == run.sync.lanes);
  CHECK(change->sync.fragments * std::max<int64_t>(1, change->sync.delay_steps) <=
        run.plan.base_steps);
}

TEST_CASE("what is not known changes nothing") {
  const auto run = run_of(0.05, outer_optimizer::SharesRule::kBandwidth);
  CHECK_FALSE(
      change_of_sync(run.plan, run.sync.shares, sites({100, 0, 3}), kParameters, run.sync, {}));
  auto untimed = sites({1, 1, 1});
  untimed[1].seen.reset();
  const auto change = change_of_sync(run.plan, run.sync.shares, untimed, kParameters, run.sync, {});
  REQUIRE(change);  // shares need no step times
  CHECK(change->sync.fragments == run.sync.fragments);
  CHECK(change->sync.codec.kind == run.sync.codec.kind);
}

TEST_CASE("shares follow the uplinks of three sites or more") {
  const auto run = run_of(std::nullopt, outer_optimizer::SharesRule::kBandwidth);
  CHECK(shares_by_uplinks(run.sync.shares, sites({1, 10})).empty());
  CHECK(shares_by_uplinks(outer_optimizer::SharesRule::kEqual, sites({1, 10, 10})).empty());
  const auto known = sites({100, 20, 100, 100});
  const auto change = change_of_sync(run.plan, run.sync.shares, known, kParameters, run.sync, {});
  REQUIRE(change);
  REQUIRE(change->shares.size() == 4);
  CHECK(change->shares[1] < change->shares[0]);
  CHECK(std::accumulate(change->shares.begin(), change->shares.end(), 0.0) == Approx(1));
  CHECK_THAT(change->reason, Contains("uplinks"));
  CHECK_FALSE(
      change_of_sync(run.plan, run.sync.shares, known, kParameters, run.sync, change->shares));
}
