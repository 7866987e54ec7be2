// Rounds that lose a site and go on with the others.
#include <set>

#include "tests/trainer/round/mortal_sites.h"

namespace farstep {
namespace {

constexpr int64_t kRounds = 4;

TEST_CASE("the sites that are left go on together, and lose none of their steps") {
  for (const auto& kind :
       {kPlainRounds, kHybridRounds, kDelayedRounds, kFragmentedRounds, kEagerRounds}) {
    for (const int64_t step : {1, 6, 12}) {
      INFO(kind.fragments << " fragments, delay " << kind.delay_steps << ", eager "
                          << (kind.strategy == outer_optimizer::StrategyKind::kEagerUpdates)
                          << ", died in step " << step);
      FakeSites sites(run_of(kind, 3, kRounds), {1, 0.5, 1});
      let_die(sites, 1, 2, step);
      CHECK(outcomes_of(sites) == std::vector<std::string>{"done", "died", "done"});
      CHECK(
          std::ranges::equal(sites[0].strategy->theta_global(), sites[2].strategy->theta_global()));
      CHECK(sites[0].planner.state() == sites[2].planner.state());
      for (const std::size_t site : {0, 2}) {
        CHECK(sites[site].run.position.rounds_done == kRounds);
        CHECK(sites[site].peers.view().members == std::vector<std::string>{"s0", "s2"});
        std::set<std::pair<int64_t, int64_t>> steps;
        for (const auto& event : sites[site].events<StepEvent>()) {
          CHECK(steps.emplace(event.round, event.step).second);
        }
        CHECK(sites[site].training.steps.size() == steps.size());
      }
      // With a delay the lost site had sent its last delta. If that counts, all of its range does.
      if (kind.delay_steps > 0 && step == 12) continue;
      // An eager site's delta of the round before may still be on its way.
      const bool is_eager = kind.strategy == outer_optimizer::StrategyKind::kEagerUpdates;
      CHECK(
          (are_windows_whole(sites, {{1, 1}}) || (is_eager && are_windows_whole(sites, {{1, 0}}))));
    }
  }
}

TEST_CASE("after a loss the others train as if they had been alone from there") {
  const auto run_with = [](int num_sites, int64_t rounds) {
    auto run = run_of(kPlainRounds, num_sites, rounds);
    run.outer.mean_rounds = 0;  // `before` ends earlier, and all must take the same steps
    return run;
  };
  FakeSites before(run_with(3, 1), {1, 1, 1});
  before.run();
  FakeSites pair(run_with(2, kRounds), {1, 1});
  for (const std::size_t site : {0, 1}) pair[site].restore(before[site].checkpoints.saved);
  pair.run();

  FakeSites sites(run_with(3, kRounds), {1, 1, 1});
  let_die(sites, 2, 2, 5);
  CHECK(outcomes_of(sites) == std::vector<std::string>{"done", "done", "died"});
  for (const std::size_t site : {0, 1}) {
    CHECK(sites[site].training.values == pair[site].training.values);
    CHECK(std::ranges::equal(sites[site].strategy->outer_momentum(),
                             pair[site].strategy->outer_momentum()));
  }
}

TEST_CASE("sites are lost one after the other until one is left") {
  FakeSites sites(run_of(kDelayedRounds, 4, kRounds), {1, 1, 1, 1});
  let_die(sites, 0, 1, 4);
  let_die(sites, 3, 2, 4);
  let_die(sites, 1, 3, 4);
  CHECK(outcomes_of(sites) == std::vector<std::string>{"died", "died", "done", "died"});
  CHECK(sites[2].run.position.rounds_done == kRounds);
  CHECK(sites[2].peers.view().members == std::vector<std::string>{"s2"});
  CHECK(are_windows_whole(sites, {{0, 0}, {3, 1}, {1, 2}}));
}

TEST_CASE("a site that is lost while the sites are measured is planned without") {
  FakeSites sites(run_of(kHybridRounds, 3, kRounds), {1, 0.5, 0.25});
  let_die(sites, 0, 1, 3);  // of four measuring steps
  CHECK(outcomes_of(sites) == std::vector<std::string>{"died", "done", "done"});
  CHECK(std::ranges::equal(sites[1].strategy->theta_global(), sites[2].strategy->theta_global()));
  CHECK(are_windows_whole(sites, {{0, 0}}));
  // Twice as fast, twice as many steps.
  CHECK(sites[1].run.plan().sites[1].local_steps == 2 * sites[1].run.plan().sites[0].local_steps);
}

}  // namespace
}  // namespace farstep
