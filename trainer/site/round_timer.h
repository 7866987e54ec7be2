// Measures how a site spends the time from one round's end to the next. The planner makes the next
// plan from it.
//
// All times are in seconds. Not thread-safe: belongs to the training thread.
#pragma once

#include <vector>

#include "trainer/base/clock.h"

namespace farstep {

class RoundTimer {
 public:
  // `clock` must outlive this.
  explicit RoundTimer(const Clock& clock) : clock_(clock) {}

  // Starts a round. The `own_seconds` that the site worked in the sync before count as overhead of
  // this round.
  void start_round(double own_seconds);
  // Continues an interrupted round, of which `spent_seconds` had passed. `steps` are the times of
  // its inner steps.
  void resume_round(double spent_seconds, std::vector<double> steps);
  // Adds an inner step of the round.
  void add_step(double seconds);
  // Adds a wait for a sync, which is not the site's own time.
  void add_wait(double seconds);

  // Returns the time since the round began.
  double elapsed_seconds() const;
  // The time of each step of the round.
  const std::vector<double>& steps() const { return steps_; }
  // The sum of the steps' times. The waits, and all other time, both since the round began or was
  // resumed.
  double compute_seconds() const;
  double waited_seconds() const { return waited_seconds_; }
  double overhead_seconds() const;
  // Returns the expected time of the next step, from the round's steps so far; 0 before the first.
  double step_seconds() const;
  // The same from the steps that measure the site at the run's start. All of them are the round's
  // first steps. 0 for fewer than two.
  double measured_step_seconds() const;

 private:
  const Clock& clock_;
  double began_seconds_ = 0;  // on the clock, own_seconds before the call
  double spent_seconds_ = 0;  // before an interruption, besides the steps
  double waited_seconds_ = 0;
  std::vector<double> steps_;
};

}  // namespace farstep
