// Plays the outer rounds of a run in simulated time, with the plan and the averaging of a real one.
//
// A round of a site: it begins when the site learns that the last one was committed (at time 0 the
// first; a joiner as soon as the round before its first is); validation and checkpoint; inner
// steps, as many as the plan gives it, or until the planned time is up; arrival. The coordinator
// says Go when the last site's arrival has reached it: until Go reaches the site it waits. Then
// exchange, outer step, and a vote: the round is committed when every vote has reached the
// coordinator. How long messages take, network.h says. The planner learns of each round what a real
// run would tell it, and plans the next one. Sites that have not joined yet have no part in any of
// it: when one joins, a new planner begins with the sites that are there, their profiles, and what
// the round before showed (unless re-planning is off). The same scenario gives the same numbers.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "heterogeneity/plan/planner.h"
#include "heterogeneity/simulate/network.h"
#include "heterogeneity/simulate/scenario.h"
#include "trainer/telemetry/idle.h"

namespace farstep {

// What one site did in a round, in the order in which it did it.
struct SiteRound {
  std::size_t site = 0;      // site id
  SitePlan plan;             // what it had to do
  double start_seconds = 0;  // since the start of the simulation
  double evaluate_seconds = 0, checkpoint_seconds = 0;
  std::vector<double> step_seconds;  // of each inner step
  double wait_seconds = 0, exchange_seconds = 0, outer_seconds = 0, vote_seconds = 0;

  double averaging_weight = 0;
  int64_t sent_bytes = 0, received_bytes = 0;

  int64_t steps() const { return std::ssize(step_seconds); }
  // The same by cause, as its events account for it.
  TimeUse time() const;
};

struct SimulatedRound {
  int64_t round = 0;       // from 1
  int64_t generation = 0;  // of the membership, from 1
  // From its start until every site should be at the sync; null if the plan does not know.
  std::optional<double> planned_seconds;
  std::vector<SiteRound> sites;  // that take part, in order of site ids
};

class Simulation {
 public:
  // `scenario` as scenario_from_json() returns it; `source` names it in messages. Throws
  // ConfigError if the policy cannot plan for the sites.
  Simulation(Scenario scenario, std::string source);

  // Plays the next round; the result is valid until the next call. Throws InternalError after the
  // last one.
  const SimulatedRound& next_round();

  const Scenario& scenario() const { return scenario_; }

 private:
  struct SiteState {
    double free_seconds = 0;       // when it can begin its next round
    RoundTiming timing;            // of its last round
    double true_step_seconds = 0;  // by the profile, of the batch and micro-batch below
    int64_t batch = 0, micro_batch = 0;
  };

  void admit_joiners();
  void take_steps(std::size_t index);  // into present_
  double mean_step_seconds(std::size_t id, const SitePlan& plan);
  bool has_room(double elapsed_seconds, double step_seconds) const;
  void synchronise();
  void learn();

  const Scenario scenario_;
  const std::string source_;
  const Network network_;
  std::optional<Planner> planner_;
  std::vector<std::size_t> present_;  // site ids
  SyncCost sync_;                     // of those present
  std::vector<SiteState> states_;     // by site id
  double commit_seconds_ = 0;         // of the last round, at the coordinator
  SimulatedRound round_;
};

}  // namespace farstep
