// Rounds that lose a site and take it back.
#include "tests/trainer/round/returning_sites.h"
#include "trainer/round/validation.h"

namespace farstep {
namespace {

TEST_CASE("a site that comes back has the others' state, and trains with them to the end") {
  for (const auto& kind :
       {kPlainRounds, kHybridRounds, kDelayedRounds, kFragmentedRounds, kEagerRounds}) {
    for (const std::size_t victim : {1, 0}) {
      FakeSites sites(run_of(kind, 3, 10), {1, 0.5, 1});
      let_die(sites, victim, 2, 5, true);
      CHECK(outcomes_with_returns(sites) == std::vector<std::string>(3, "done"));
      for (const auto& site : sites.sites) {
        CHECK(site->run.position.rounds_done == 10);
        CHECK(site->peers.view().members == std::vector<std::string>{"s0", "s1", "s2"});
        CHECK(
            std::ranges::equal(site->strategy->theta_global(), sites[2].strategy->theta_global()));
        CHECK(std::ranges::equal(site->strategy->outer_momentum(),
                                 sites[2].strategy->outer_momentum()));
        CHECK(site->planner.state() == sites[2].planner.state());
      }
      CHECK_FALSE(sites[victim].training.steps.empty());
      // It was away for two rounds, attended the next, and worked in all others.
      CHECK(sites[victim].events<RoundEvent>().size() >= 6);
      // All tell the same of its return, and those who stayed of its loss.
      const auto back = sites[victim].events<ViewEvent>();
      const auto seen = sites[2].events<ViewEvent>();
      REQUIRE(back.size() == 1);
      REQUIRE(seen.size() == 2);
      const auto name = "s" + std::to_string(victim);
      CHECK(seen[0].lost == name);
      // A view is told with the sync that found it, which eager updates apply a round later.
      const int64_t lag = kind.strategy == outer_optimizer::StrategyKind::kEagerUpdates ? 1 : 0;
      CHECK((seen[0].round == 2 || seen[0].round == 2 - lag));
      CHECK(seen[0].members.size() == 2);
      // It trained again, on windows that nobody else had, and its deltas counted. What it had
      // reserved in the round of its loss has been trained on by others.
      CHECK(are_windows_whole(sites, {{victim, seen[0].round - 1}}));
      for (const auto& joined : {back[0], seen[1]}) {
        CHECK(joined.joined == name);
        CHECK(joined.members.size() == 3);
        CHECK(joined.generation == seen[1].generation);
        CHECK(joined.round == seen[1].round);
        CHECK(joined.round + 1 + lag == sites[victim].events<RoundEvent>().front().round);
      }
    }
  }
}

TEST_CASE("a site that comes back for the last round alone ends with the others' theta_global") {
  for (const auto& kind : {kPlainRounds, kEagerRounds}) {
    const int64_t rounds = kind.strategy == outer_optimizer::StrategyKind::kEagerUpdates ? 3 : 2;
    FakeSites sites(run_of(kind, 3, rounds), {1, 0.5, 1});
    let_die(sites, 1, 1, 5, true);
    CHECK(outcomes_with_returns(sites) == std::vector<std::string>(3, "done"));
    CHECK(sites[1].events<RoundEvent>().empty());
    for (const auto& site : sites.sites) {
      CHECK(site->run.position.rounds_done == rounds);
      CHECK(std::ranges::equal(site->strategy->theta_global(), sites[2].strategy->theta_global()));
      CHECK(std::ranges::equal(site->training.values, sites[2].training.values));
    }
  }
}

TEST_CASE("a validation leaves a state alone that is still being copied for a newcomer") {
  // In these theta_local is not theta_global between two rounds, so the validation swaps them.
  for (const auto& kind : {kFragmentedRounds, kDelayedRounds, kEagerRounds}) {
    for (const std::size_t victim : {1, 0}) {
      FakeSites sites(run_of(kind, 3, 8), {1, 1, 1});
      int64_t swaps = 0;
      for (const auto& site : sites.sites) {
        auto& handover = site->handover;
        handover.is_slow = true;
        site->validation.evaluate = [&](Run& run) {
          swap_global_and_local(run);
          handover.copy();  // whatever could still be under way reads now
          swap_global_and_local(run);
        };
      }
      sites[2].validation.before_validation = [&](int64_t) {
        swaps += sites[2].strategy->local_is_global() ? 0 : 1;
      };
      let_die(sites, victim, 2, 5, true);
      CHECK(outcomes_with_returns(sites) == std::vector<std::string>(3, "done"));
      CHECK(swaps > 0);
      for (const auto& site : sites.sites) {
        CHECK(
            std::ranges::equal(site->strategy->theta_global(), sites[2].strategy->theta_global()));
        CHECK(std::ranges::equal(site->strategy->outer_momentum(),
                                 sites[2].strategy->outer_momentum()));
      }
    }
  }
}

}  // namespace
}  // namespace farstep
