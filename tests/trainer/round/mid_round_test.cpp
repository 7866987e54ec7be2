// Sites that come back in the middle of a round, and take the state of its start.
#include <algorithm>

#include "tests/trainer/round/returning_sites.h"
#include "trainer/round/mid_round_handover.h"

namespace farstep {
namespace {

// Makes a site die at the begin of round 2, and a donor be asked for its state in this step of the
// round.
void let_return_in_round_2(FakeSites& sites, std::size_t victim, int64_t donor_step) {
  let_die(sites, victim, 2, 1, true);
  const int site = static_cast<int>(victim);
  const int donor = site == 0 ? 1 : 0;
  sites[static_cast<std::size_t>(donor)].training.before_step = [=, &sites](const auto& order) {
    if (order.round != 2 || order.step != donor_step) return;
    sites.meeting.wait_for_loss(site);
    sites.meeting.ask(donor, site, 1);
  };
}

void check_together(FakeSites& sites, std::size_t victim, int64_t first_round) {
  const auto back = sites[victim].events<RoundEvent>();
  REQUIRE_FALSE(back.empty());
  CHECK(back.front().round == first_round);
  CHECK(back.front().averaging_weight > 0);
  for (const auto& site : sites.sites) {
    CHECK(site->run.position.rounds_done == 8);
    CHECK(site->peers.view().members == std::vector<std::string>{"s0", "s1", "s2"});
    CHECK(std::ranges::equal(site->strategy->theta_global(), sites[2].strategy->theta_global()));
    CHECK(
        std::ranges::equal(site->strategy->outer_momentum(), sites[2].strategy->outer_momentum()));
    CHECK(site->planner.state() == sites[2].planner.state());
  }
  const auto others = sites[2].events<RoundEvent>();
  for (const auto& round : back) {
    CHECK(std::ranges::any_of(others, [&](const auto& other) {
      return other.round == round.round && other.theta_hash == round.theta_hash;
    }));
  }
  // Its former process's windows of round 2 went to others.
  CHECK(are_windows_whole(sites, {{victim, 1}}));
}

TEST_CASE("a site that comes back in mid-round trains from the next round on") {
  struct Row {
    RoundKind kind;
    int64_t donor_step;
    bool is_served;  // before the first sync of the round
  };
  const std::vector<Row> table = {
      {kPlainRounds, 2, true},   {kPlainRounds, 12, true},     {kHybridRounds, 2, true},
      {kHybridRounds, 5, true},  {kFragmentedRounds, 2, true}, {kFragmentedRounds, 6, false},
      {kDelayedRounds, 1, true}, {kDelayedRounds, 2, false},   {kDelayedRounds, 8, false},
  };
  for (const auto& [kind, donor_step, is_served] : table) {
    for (const std::size_t victim : {1, 0}) {
      INFO(kind.fragments << " fragments, delay " << kind.delay_steps << ", asked at step "
                          << donor_step << ", victim " << victim);
      // With fragments all have 12 steps, so that the table can tell when the first sync begins.
      const double seconds = kind.fragments == 1 ? 0.5 : 1;
      FakeSites sites(run_of(kind, 3, 8), {1, seconds, 1});
      let_return_in_round_2(sites, victim, donor_step);
      CHECK(outcomes_with_returns(sites) == std::vector<std::string>(3, "done"));
      check_together(sites, victim, is_served ? 3 : 4);
    }
  }
}

TEST_CASE("a transfer that takes longer than the round waits for its end") {
  FakeSites sites(run_of(kPlainRounds, 3, 8), {1, 1, 1});
  for (const auto& site : sites.sites) site->handover.seconds = 100;
  let_return_in_round_2(sites, 1, 9);
  CHECK(outcomes_with_returns(sites) == std::vector<std::string>(3, "done"));
  check_together(sites, 1, 4);
}

TEST_CASE("a state is sent in mid-round if that saves more time than all wait for it") {
  struct Row {
    double transfer, rest, round;
    int64_t members;
    bool is_worth;
  };
  const std::vector<Row> table = {
      {0, 0, 10, 1, true},      // at any time
      {4, 4, 10, 100, true},    // nobody waits
      {6, 4, 10, 3, true},      // four sites wait for 2, and one saves 10
      {6.5, 4, 10, 3, false},   // 2.5
      {50, 10, 10, 100, true},  // all wait for 40 in either case
      {50, 8, 10, 3, true},     // 42 instead of 40
      {50, 7, 10, 3, false},    // 43
      {0, 0, 0, 1, false},      // of no steps
  };
  for (const auto& row : table) {
    CHECK(is_worth_sending(row.transfer, row.rest, row.round, row.members) == row.is_worth);
  }
}

}  // namespace
}  // namespace farstep
