// Where a site's own time goes between two rounds' ends: what the next plan is made from.
//
// Not thread-safe: belongs to the training thread.
#pragma once

#include <vector>

#include "trainer/base/clock.h"

namespace farstep {

class RoundTimer {
 public:
  // `clock` must outlive this.
  explicit RoundTimer(const Clock& clock) : clock_(clock) {}

  // A round begins; `own_seconds` of the site's own work in the sync before count as its overhead.
  void start_round(double own_seconds);
  // A round goes on of which `spent_seconds` had passed when the site was interrupted.
  void resume_round(double spent_seconds);
  // An inner step of the round is done.
  void add_step(double seconds);
  // The site has waited for a sync, which is not its own time.
  void add_wait(double seconds);

  // Since the round began.
  double elapsed_seconds() const;
  // Of the round's steps since it began or was resumed, of its waits, and of everything else.
  double compute_seconds() const;
  double waited_seconds() const { return waited_seconds_; }
  double overhead_seconds() const;
  // What the next step will take, by those of the round so far; 0 before the first.
  double step_seconds() const;

 private:
  const Clock& clock_;
  double began_seconds_ = 0;  // on the clock, own_seconds before now
  double spent_seconds_ = 0;  // before an interruption
  double waited_seconds_ = 0;
  std::vector<double> steps_;
};

}  // namespace farstep
