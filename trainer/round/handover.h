// Handing a run's state to a site that joins while the run goes on.
//
// A member hands over what all members share between two rounds. It does so at the end of a round,
// or in the middle of the next (mid_round_handover.h). The newcomer takes the state, and then
// attends the round after it without work (attend_round() in join_round.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/config/json_fields.h"
#include "trainer/data/run_windows.h"
#include "trainer/rate/rate_schedule.h"
#include "trainer/validation/validation_history.h"
#include "wan/protocol/protocol.h"

namespace farstep {

struct Run;

// What all members share between two rounds, besides theta_global and momentum.
struct SharedState {
  int64_t rounds_done = 0;
  RunWindowsState windows;
  int64_t measuring_syncs = 0;
  int64_t generation = 0;
  std::vector<std::string> members;  // for which the next round is planned
  std::vector<double> reduction_shares;
  RateCycle cycle;
  ValidationHistory validations;
  Json planner, strategy;
  std::string momentum_hash;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("rounds_done", rounds_done, "outer rounds done", required(in_range(1, kMostSequences)));
    windows.fields(visit);
    visit("measuring_syncs", measuring_syncs, "committed measuring syncs",
          required(in_range(0, kMostSequences)));
    visit("generation", generation, "of the membership", required(at_least(0)));
    visit("members", members, "for which the next round is planned", kRequired);
    visit("reduction_shares", reduction_shares, "of the last retune, by member", kRequired);
    visit("rate_cycle", cycle, "the part of the run in which the rate follows the schedule once",
          kRequired);
    visit("validations", validations, "what all sites know of the run's validations", kRequired);
    visit("planner", planner, "as in a checkpoint", kRequired);
    visit("strategy", strategy, "as in a checkpoint", kRequired);
    visit("momentum_hash", momentum_hash, "checksum of the outer momentum", kRequired);
  }
};

class Handover {
 public:
  virtual ~Handover() = default;
  // Begins to send the state that the members share to these newcomers, while training goes on.
  // `round` is the newest one whose syncs the state has, and no sync may have begun since. Does
  // nothing for a newcomer to which this state is sent already. A failure is logged: the newcomer
  // asks again.
  virtual void begin(Run& run, int64_t round, std::span<const wan::Newcomer> newcomers) = 0;
  // Returns when theta_global and momentum are not read any more: all states are copied. Whoever
  // changes them calls it first, after begin(). Any thread may call it.
  virtual void wait_for_copies() = 0;
  // Returns how long the transfer to one newcomer takes, by what is known of this site's uplink;
  // nullopt if nothing is.
  virtual std::optional<double> expected_seconds(const Run& run) const = 0;
};

}  // namespace farstep
