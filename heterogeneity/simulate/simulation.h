// Simulates the outer rounds of a run, with the plan and the averaging weights of a real one.
//
// If the planner has no figures of the sites, the first round is planned again after a few steps.
// All sites wait until the vote on that is over. A site's round begins when the site learns that
// the last round was committed. The first round begins at time 0; a joiner's first round begins as
// soon as the round before it does. A round consists of validation and checkpoint, then inner
// steps: as many as planned, or until the planned time has passed.
//
// The fragments of the model are synced one after the other, each at its step of the round
// (outer_optimizer/schedule/fragment_schedule.h). A site sends its delta, and trains on until the
// step at which it applies the mean. Then it waits for the rest of the sync. A sync consists of the
// arrival, Go, the exchange, the outer step and a vote. The coordinator sends Go when the last
// site's arrival has reached it. The sync is committed when every vote has reached the coordinator.
// network.h computes the times of messages.
//
// With a strategy that sums gradients the sites take every step together. The gradient travels in
// buckets during backward, the last two thirds of a step. So the exchange ends after its last
// bucket at the earliest, which follows the backward of the slowest site. A master's values travel
// after that. If the master also sends the batches, those of a step leave when the step before it
// begins, or at the round's begin; the values queue behind what is left of them. A round ends with
// an arrival and a vote.
//
// The planner learns the figures of a round that a real run would send it, and plans the next.
// Sites that have not joined yet do not take part. When one joins, the planner plans for the new
// view, with what it has learned of the other sites and with the joiner's profile. The same
// scenario produces the same numbers. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heterogeneity/plan/planner.h"
#include "heterogeneity/simulate/network.h"
#include "heterogeneity/simulate/scattered_steps.h"
#include "heterogeneity/simulate/scenario.h"
#include "heterogeneity/simulate/site_round.h"
#include "outer_optimizer/schedule/averaging.h"
#include "outer_optimizer/schedule/fragment_schedule.h"
#include "trainer/base/view.h"

namespace farstep::heterogeneity {

struct SimulatedRound {
  int64_t round = 0;       // from 1
  int64_t generation = 0;  // of the membership, from 1
  // The planned time from the round's start until every site arrives at the sync; nullopt if the
  // plan has no step times.
  std::optional<double> planned_seconds;
  std::vector<SiteRound> sites;  // that take part, in order of site ids
};

class Simulation {
 public:
  // `scenario` must be a result of scenario_from_json(); `source` names it in messages. Throws
  // ConfigError if the policy cannot plan for the sites.
  Simulation(Scenario scenario, std::string source);
  Simulation(const Simulation&) = delete;

  // Simulates the next round; the result is valid until the next call. Throws InternalError after
  // the last one.
  const SimulatedRound& next_round();

  const Scenario& scenario() const { return scenario_; }

 private:
  // A site's work since the start.
  struct Trained {
    int64_t steps = 0, tokens = 0;
  };
  struct SiteState {
    double free_seconds = 0;       // when it can begin what it does next
    double true_step_seconds = 0;  // by the profile, of the batch and micro-batch below
    int64_t batch = 0, micro_batch = 0;
    Trained trained;
    std::vector<Trained> applied;  // by fragment: what it had trained when the mean was applied
    // Of its round:
    std::optional<outer_optimizer::FragmentSchedule> schedule;
    double longest_step_seconds = 0;
  };

  void admit_joiners();
  void begin_round(std::size_t index);  // this and all that take an index: into present_
  void begin_plan(std::size_t index);
  bool wants_step(std::size_t index) const;
  void take_step(std::size_t index);
  // Trains until the site's syncs of `step` are due, as a real site does. Syncs of the round's last
  // step are due when the round ends, earlier or later.
  void train_until(std::size_t index, int64_t step);
  double true_step_seconds(std::size_t index);
  bool has_room(double elapsed_seconds, double step_seconds) const;
  // Lets the batches of the next step leave, by the present plans.
  void begin_scatter();
  // Takes a step at all sites, and sums its gradients. Requires a strategy that does.
  void step_together();
  // Lets all sites arrive and vote, and waits for that. Returns how long each has waited.
  std::vector<double> agree();
  // Returns the steps of the round for which the present plan holds.
  int64_t planned_steps() const;
  void plan_rest();
  // Returns when the last arrival reaches the coordinator; the sites send theirs at free_seconds.
  double go_seconds(const SyncCost& cost) const;
  const SyncCost& cost_of(int64_t fragment);
  void sync(int64_t fragment);
  // Returns the sites' coefficients for the deltas that they take now.
  std::vector<double> coefficients(int64_t fragment) const;
  void learn();

  const Scenario scenario_;
  const std::string source_;
  const Network network_;
  ScatteredSteps scatter_;
  std::optional<Planner> planner_;
  std::vector<std::size_t> present_;  // site ids
  View view_;                         // of those present
  // Of those present, by the values that are synced, and whether the round is a fine one.
  std::map<std::pair<int64_t, bool>, std::optional<SyncCost>> costs_;
  std::vector<SiteState> states_;  // by site id
  double commit_seconds_ = 0;      // of the last round, at the coordinator
  SimulatedRound round_;
};

}  // namespace farstep::heterogeneity
