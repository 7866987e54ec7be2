// The planner when sites leave, join, return and change places.
#include <algorithm>
#include <random>

#include "heterogeneity/plan/planner.h"
#include "tests/heterogeneity/plan/fixed_planner.h"
#include "tests/support/catch.h"

using namespace farstep;
using namespace farstep::heterogeneity;
using Catch::Contains;

namespace {

View view_of_names(std::vector<std::string> members) {
  return {.generation = 1, .members = std::move(members), .self = 0};
}

// The seconds of a step of site0, site1, ... by name.
double seconds_of(const std::string& site) {
  return kPaperSeconds[site.back() - '0'];
}

// The timings of a round of the plan, in its order.
std::vector<RoundTiming> true_timings(const RoundPlan& plan) {
  std::vector<double> seconds;
  for (const auto& work : plan.sites) seconds.push_back(seconds_of(work.site));
  return timings_of(plan, seconds);
}

void observe(Planner& planner, const View& view) {
  planner.observe(view, true_timings(planner.plan(view)));
}

// Requires that both have the same members with the same work, bit for bit, in whatever order.
void require_same_work(const RoundPlan& a, const RoundPlan& b) {
  REQUIRE(a.round_seconds == b.round_seconds);
  REQUIRE(a.measuring_steps == b.measuring_steps);
  REQUIRE(a.sites.size() == b.sites.size());
  for (const auto& one : a.sites) {
    const auto other = std::ranges::find(b.sites, one.site, &SitePlan::site);
    REQUIRE(other != b.sites.end());
    REQUIRE(one == *other);
  }
}

std::vector<std::string> names_of(const RoundPlan& plan) {
  std::vector<std::string> names;
  for (const auto& work : plan.sites) names.push_back(work.site);
  return names;
}

const View kAll = view_of_names({"site0", "site1", "site2", "site3"});
const View kThree = view_of_names({"site0", "site2", "site3"});

Planner measured_planner(const View& view = kAll) {
  Planner planner(plan_config(Policy::kHybrid), unknown_sites(4), view);
  observe(planner, view);
  return planner;
}

}  // namespace

TEST_CASE("a member that left is not planned for") {
  auto planner = measured_planner();
  planner.set_view(kThree);
  const auto& plan = planner.plan(kThree);
  REQUIRE(names_of(plan) == kThree.members);
  CHECK(idle_share(plan) < 0.004);
  CHECK(planner.sites(kThree)[1].seen->seconds == seconds_of("site2"));
  CHECK_THROWS_AS(planner.plan(kAll), InternalError);
}

TEST_CASE("those that stay are planned for as if the others had never been there") {
  auto planner = measured_planner();
  auto fewer = measured_planner(kThree);
  planner.set_view(kThree);
  for (int round = 0; round < 3; ++round) {
    require_same_work(planner.plan(kThree), fewer.plan(kThree));
    observe(planner, kThree);
    observe(fewer, kThree);
  }
}

TEST_CASE("a member that returns brings back what was known of it") {
  auto planner = measured_planner();
  auto stayed = measured_planner();
  planner.set_view(kThree);
  for (int round = 0; round < 5; ++round) observe(planner, kThree);
  planner.set_view(kAll);
  REQUIRE(names_of(planner.plan(kAll)) == kAll.members);
  CHECK_THAT(planner.plan(kAll).sites[1].reason, Contains("measured in the run"));
  CHECK(planner.sites(kAll)[1].seen->seconds == seconds_of("site1"));
  require_same_work(planner.plan(kAll), stayed.plan(kAll));
}

TEST_CASE("a member of which nothing is known is planned for as an unmeasured site") {
  auto planner = measured_planner(kThree);
  for (const auto* name : {"site1", "site9"}) {  // named at the start, and never heard of
    auto members = kThree.members;
    members.emplace_back(name);
    const auto view = view_of_names(std::move(members));
    planner.set_view(view);
    const auto& plan = planner.plan(view);
    REQUIRE(names_of(plan) == view.members);
    CHECK(plan.measuring_steps == 0);
    CHECK(plan.sites[3].local_steps == 100);
    CHECK(plan.sites[3].batch == 4);
    CHECK_THAT(plan.sites[3].reason, Contains("unknown yet"));
    CHECK_FALSE(plan.round_seconds);
  }
  const auto view = view_of_names({"site3", "site1"});
  planner.set_view(view);
  observe(planner, view);
  CHECK(idle_share(planner.plan(view)) < 0.004);
}

TEST_CASE("a profile that was known before its site joined is planned with") {
  auto sites = paper_sites();
  const auto all = view_of_sites(sites);
  Planner planner(plan_config(Policy::kHybrid), sites, view_of_names({"node1", "node2", "node3"}));
  planner.set_view(all);
  require_same_work(planner.plan(all), FixedPlanner(plan_config(Policy::kHybrid), sites).plan());
}

TEST_CASE("a policy that lacks the profile of a new member refuses it and keeps its plan") {
  const auto sites = paper_sites();
  const auto before = view_of_sites(sites);
  Planner planner(plan_config(Policy::kStepsByTflops), sites, before);
  const auto plan = planner.plan(before);
  CHECK_THROWS_WITH(planner.set_view(view_of_names({"node1", "stranger"})),
                    Contains("stranger has none"));
  require_same_work(planner.plan(before), plan);
}

TEST_CASE("members in another order have the same work bit for bit") {
  std::mt19937 random(23);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  for (const bool with_profiles : {true, false}) {
    const auto sites = with_profiles ? paper_sites() : unknown_sites(4);
    const auto view = view_of_sites(sites);
    Planner still(plan_config(Policy::kHybrid), sites, view);
    Planner moved(plan_config(Policy::kHybrid), sites, view);
    auto other = view;
    for (int round = 0; round < 30; ++round) {
      std::ranges::shuffle(other.members, random);
      ++other.generation;
      moved.set_view(other);
      REQUIRE(names_of(moved.plan(other)) == other.members);
      require_same_work(moved.plan(other), still.plan(view));
      auto timings = timings_of(still.plan(view), {0.3, 0.25, 0.1, 0.2});
      for (auto& timing : timings) timing.step_seconds *= noise(random);
      std::vector<RoundTiming> permuted;
      for (const auto& name : other.members) {
        permuted.push_back(timings[static_cast<std::size_t>(std::ranges::find(view.members, name) -
                                                            view.members.begin())]);
      }
      still.observe(view, timings);
      moved.observe(other, permuted);
    }
  }
}

TEST_CASE("figures of an older view are learned by name for the members of the present one") {
  auto planner = measured_planner();
  auto timings = true_timings(planner.plan(kAll));
  for (auto& timing : timings) timing.step_seconds *= 2;
  planner.set_view(kThree);
  planner.observe(kAll, timings);
  CHECK(names_of(planner.plan(kThree)) == kThree.members);
  for (const auto& site : planner.sites(kAll)) {
    CHECK(site.seen->seconds == 2 * seconds_of(site.site));
  }
}

TEST_CASE("a restored planner knows the sites that are away, by name") {
  auto planner = measured_planner();
  planner.set_view(kThree);
  observe(planner, kThree);
  const auto state = Json::parse(planner.state().dump());
  const auto reordered = view_of_names({"site3", "site0", "site2"});
  for (const auto& view : {kThree, reordered}) {
    Planner resumed(plan_config(Policy::kHybrid), unknown_sites(4), view);
    resumed.restore(state);
    require_same_work(resumed.plan(view), planner.plan(kThree));
    resumed.set_view(kThree);
    CHECK(resumed.state() == state);
  }
  Planner other(plan_config(Policy::kHybrid), {}, kAll);
  other.restore(state);
  planner.set_view(kAll);
  require_same_work(other.plan(kAll), planner.plan(kAll));
}
