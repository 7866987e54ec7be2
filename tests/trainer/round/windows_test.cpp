// Rounds whose windows are not all trained on: nothing is left out, and nothing is merged twice.
#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "tests/trainer/round/mortal_sites.h"

namespace farstep {
namespace {

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

// A run of rounds by deadline whose sites become slower and faster within them.
std::unique_ptr<FakeSites> deadline_sites(const RoundKind& kind) {
  auto run = run_of(kind, 3, 6);
  run.plan.policy = heterogeneity::Policy::kHybrid;
  run.plan.round_end = heterogeneity::RoundEnd::kDeadline;
  auto sites = std::make_unique<FakeSites>(run, std::vector<double>{1, 0.5, 0.7});
  for (std::size_t site = 0; site < 3; ++site) {
    auto& training = (*sites)[site].training;
    training.before_step = [&training, site](const StepOrder& order) {
      const std::vector<double> seconds{0.4, 1.3, 0.9, 0.6, 1.1};
      const auto turn = static_cast<std::size_t>(order.round + order.step / 3) + 2 * site;
      training.step_seconds = seconds[turn % seconds.size()];
    };
  }
  return sites;
}

TEST_CASE("rounds by deadline leave no window out, also when they lose a site") {
  for (const auto& kind : {kHybridRounds, kFragmentedRounds, kEagerRounds}) {
    const auto all = deadline_sites(kind);
    CHECK(outcomes_of(*all) == std::vector<std::string>(3, "done"));
    CHECK(are_windows_whole(*all));
    const auto sites = deadline_sites(kind);
    let_die(*sites, 1, 3, 2);
    CHECK(outcomes_of(*sites) == std::vector<std::string>{"done", "died", "done"});
    // An eager site's delta of the round before may still be on its way.
    const bool is_eager = kind.strategy == outer_optimizer::StrategyKind::kEagerUpdates;
    CHECK(
        (are_windows_whole(*sites, {{1, 2}}) || (is_eager && are_windows_whole(*sites, {{1, 1}}))));
  }
}

TEST_CASE("with a delay the sites know too little of each other's last steps to repeat a window") {
  const auto sites = deadline_sites(kDelayedRounds);
  CHECK(outcomes_of(*sites) == std::vector<std::string>(3, "done"));
  const auto merged = merged_sequences(*sites, {});
  CHECK(std::ranges::adjacent_find(merged) == merged.end());
  const auto known = windows_at_end(*sites);
  CHECK(std::ranges::adjacent_find(known, std::not_equal_to()) == known.end());
}

}  // namespace
}  // namespace farstep
