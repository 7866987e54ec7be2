// The parts of a site's run, and the run's position.
//
// It holds references: the builder of a run owns the parts. Belongs to the training thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "heterogeneity/plan/planner.h"
#include "trainer/base/clock.h"
#include "trainer/data/run_windows.h"
#include "trainer/peers/peers.h"
#include "trainer/rate/resumed_rate.h"
#include "trainer/round/handover.h"
#include "trainer/settings/run_config.h"
#include "trainer/site/site_trainer.h"
#include "trainer/strategy/strategy.h"
#include "trainer/telemetry/recorder.h"
#include "trainer/validation/validation_history.h"

namespace farstep {

// A site's position between two rounds. The steps of the round under way are the SiteTrainer's.
struct RunPosition {
  int64_t rounds_done = 0;
  // At the start of the next round, or of its newly planned rest.
  RunWindows windows = {};      // of all sites; equal at all members between two rounds
  int64_t site_sequences = 0;   // planned for this site so far
  int64_t measuring_syncs = 0;  // committed ones
  // Between two rounds, until it was seen whether a validation is due: the training sequences of
  // all sites before the last round.
  std::optional<int64_t> unvalidated_since = {};
  ValidationHistory validations = {};  // equal at all members between two rounds
  // This site's part of the newest validation, for the others.
  std::optional<heterogeneity::PartialValidation> own_validation = {};

  int64_t round() const { return rounds_done + 1; }  // under way, or the next
};

struct Run;

// Saves the state from which a run can resume, while training goes on. All calls are for one run.
class Checkpoints {
 public:
  virtual ~Checkpoints() = default;
  // Begins to save the run's present state. Waits first for the checkpoint before this one. No step
  // may be under way.
  virtual void begin(Run& run) = 0;
  // Records the checkpoint under way if it is complete. Throws its failure. Does not wait.
  virtual void collect(Run& run) = 0;
  // Waits for the checkpoint under way, if there is one, and records it. Throws its failure.
  virtual void finish(Run& run) = 0;
  // Sets those aside that are of later rounds than `round`: the site goes on with the others' state
  // after that round, and has left its own.
  virtual void leave_after(int64_t round) = 0;
  // Replaces theta_global and momentum by those of the checkpoint after `round`, between two
  // rounds. Returns false, and changes nothing, if there is no whole one.
  virtual bool load_global(Run& run, int64_t round) = 0;
};

// Measures the loss of theta_global.
class Validator {
 public:
  virtual ~Validator() = default;
  // Validates if that is due. Called between two rounds. `sequences_before` is the number of
  // training sequences of all sites before the last round. Returns false if a stop was requested
  // before the end: then nothing is recorded. Throws DivergenceError if the loss is not finite.
  virtual bool run_if_due(Run& run, int64_t sequences_before, const std::stop_token& stop) = 0;
};

struct Run {
  const RunConfig& config;
  int64_t parameters = 0;  // of the model
  Peers& peers;
  heterogeneity::Planner& planner;
  SiteTrainer& site;
  Strategy& strategy;
  Checkpoints& checkpoints;
  Validator& validator;
  Handover& handover;
  Recorder& recorder;
  const Clock& clock;
  RunPosition position = {};
  RateCycle cycle = first_cycle(config.inner.rate, config.outer.rounds);  // equal at all members
  std::vector<double> reduction_shares = {};  // of the members, as of the last retune()
  bool has_told_forecast = false;             // in the log, by the first plan with times

  bool is_done() const { return position.rounds_done >= config.outer.rounds; }

  // Returns the present plan of the view's members.
  const heterogeneity::RoundPlan& plan() const { return planner.plan(peers.view()); }
  // Returns this site's part of it.
  const heterogeneity::SitePlan& own_plan() const { return plan().sites[peers.view().self]; }
  // Returns the site's place in the learning rate's schedule, for a checkpoint.
  RateState rate() const {
    const int64_t steps = site.steps_done();
    // A site that comes when all rounds are done has no plan.
    const int64_t local_steps = steps == 0 ? 1 : own_plan().local_steps;
    return rate_state(config.inner.rate, cycle,
                      position_after(position.rounds_done, steps, local_steps));
  }
};

// Returns this site's place among the members that train; it must be one of them.
inline int64_t training_place(const Run& run) {
  const auto before = std::span(run.plan().sites).first(run.peers.view().self);
  return std::ranges::count_if(before, &heterogeneity::SitePlan::trains);
}

}  // namespace farstep
