// Rounds whose windows are not all trained on: nothing is left out, and nothing is merged twice.
#include <set>

#include "tests/trainer/round/mortal_sites.h"

namespace farstep {
namespace {

// Runs all sites. Returns what became of each.
std::vector<std::string> outcomes_of(FakeSites& sites) {
  return run_ranks(static_cast<int>(sites.sites.size()), [&](int site) {
    return outcome_of([&] { return run_rounds(sites[static_cast<std::size_t>(site)].run, {}); });
  });
}

std::set<int64_t> sequences_of(const FakeSite& site, int64_t round) {
  std::set<int64_t> sequences;
  for (const auto& step : site.training.steps) {
    if (step.round == round) sequences.insert(step.sequences.begin(), step.sequences.end());
  }
  return sequences;
}

TEST_CASE("the others train on a lost site's windows in the next round, before all others") {
  FakeSites sites(run_of(kPlainRounds, 3, 3), {1, 1, 1});
  let_die(sites, 1, 2, 7);
  CHECK(outcomes_of(sites) == std::vector<std::string>{"done", "died", "done"});
  // 12 steps of 4 for each site; the lost one had the middle third of the second round.
  const int64_t each = 12 * 4, lost_begin = 3 * each + each;
  auto next = sequences_of(sites[0], 3);
  CHECK(*next.begin() == lost_begin);
  CHECK(*next.rbegin() == lost_begin + each - 1);
  for (const auto sequence : sequences_of(sites[1], 2)) CHECK(next.contains(sequence));
  next = sequences_of(sites[2], 3);
  CHECK(*next.begin() == 6 * each);
  CHECK(are_windows_whole(sites, {{1, 1}}));
}

TEST_CASE("rounds by deadline leave no window out, whoever is slow, is lost or comes in between") {
  for (const auto& kind : {kHybridRounds, kFragmentedRounds, kEagerRounds}) {
    auto run = run_of(kind, 3, 6);
    run.plan.policy = Policy::kHybrid;
    run.plan.round_end = RoundEnd::kDeadline;
    for (const bool is_lost : {false, true}) {
      FakeSites sites(run, {1, 0.5, 0.7});
      for (std::size_t site = 0; site < 3; ++site) {
        auto& training = sites[site].training;
        training.before_step = [&training, site](const StepOrder& order) {
          // Slower and faster within the rounds, so that the sites miss their plans to both sides.
          const std::vector<double> seconds{0.4, 1.3, 0.9, 0.6, 1.1};
          const auto turn = static_cast<std::size_t>(order.round + order.step / 3) + 2 * site;
          training.step_seconds = seconds[turn % seconds.size()];
        };
      }
      if (is_lost) let_die(sites, 1, 3, 2);
      const auto expected = std::vector<std::string>{"done", is_lost ? "died" : "done", "done"};
      CHECK(outcomes_of(sites) == expected);
      const auto lost = is_lost ? LastRounds{{1, 2}} : LastRounds{};
      const auto before = is_lost ? LastRounds{{1, 1}} : LastRounds{};
      const bool is_eager = kind.strategy == StrategyKind::kEagerUpdates;
      CHECK((are_windows_whole(sites, lost) || (is_eager && are_windows_whole(sites, before))));
    }
  }
}

}  // namespace
}  // namespace farstep
