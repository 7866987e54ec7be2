#include "trainer/round/mid_round_handover.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <vector>

namespace farstep {

namespace {

// The planner's state and the windows change in mid-round only where the round is planned anew.
bool has_state_of_start(const Run& run) {
  return run.strategy.is_before_syncs() && run.plan().measuring_steps == 0 &&
         run.own_plan().steps_before == 0;
}

bool is_served(const Run& run, const wan::DonateMessage& request) {
  if (!has_state_of_start(run)) return false;
  // The measured time of a late transfer is better than the donor's estimate. A line without any
  // figure is usually too fast to be measured.
  const double transfer_seconds =
      request.seconds > 0 ? request.seconds : run.handover.expected_seconds(run).value_or(0);
  const auto step_seconds = run.site.timer().step_seconds();
  const auto steps = run.own_plan().local_steps;
  const double round_seconds = static_cast<double>(steps) * step_seconds;
  const double rest_seconds = static_cast<double>(steps - run.site.steps_done()) * step_seconds;
  const bool is_worth = is_worth_sending(transfer_seconds, rest_seconds, round_seconds,
                                         std::ssize(run.peers.view().members));
  if (!is_worth) {
    spdlog::debug(
        "site {} gets the state after round {}: its transfer takes {:.1f} s, the rest of the "
        "round {:.1f} s",
        request.newcomer.site, run.position.round(), transfer_seconds, rest_seconds);
  }
  return is_worth;
}

}  // namespace

// At the round's end all wait for what the transfer takes longer than the rest of the round. If it
// began after the round, they would wait for what it takes longer than a whole round. The
// difference is a loss for the newcomer and each member, and a round is what the newcomer saves.
bool is_worth_sending(double transfer_seconds, double rest_seconds, double round_seconds,
                      int64_t num_members) {
  const double wait_seconds =
      std::max(0.0, std::min(transfer_seconds, round_seconds) - rest_seconds);
  return static_cast<double>(num_members + 1) * wait_seconds < round_seconds;
}

void hand_over_in_mid_round(Run& run) {
  if (run.site.timer().steps().empty()) return;  // a request waits until a step is timed
  std::vector<wan::Newcomer> newcomers;
  for (const auto& request : run.peers.take_state_requests(run.position.rounds_done)) {
    if (is_served(run, request)) newcomers.push_back(request.newcomer);
  }
  if (!newcomers.empty()) run.handover.begin(run, run.position.rounds_done, newcomers);
}

}  // namespace farstep
