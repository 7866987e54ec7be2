// A round is the time between two syncs of a site. What is neither a step nor a wait for others is
// the site's own overhead, which the planner adds to its steps.
#include "trainer/site/round_timer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "heterogeneity/knowledge/round_timing.h"

namespace farstep {

void RoundTimer::start_round(double own_seconds) {
  // The time that the site spent in the sync for itself belongs to the round that begins.
  began_seconds_ = clock_.now_seconds() - own_seconds;
  spent_seconds_ = waited_seconds_ = 0;
  steps_.clear();
}

void RoundTimer::resume_round(double spent_seconds, std::vector<double> steps) {
  const double steps_seconds = std::accumulate(steps.begin(), steps.end(), 0.0);
  start_round(steps_seconds);
  // The round seems to begin the time of its steps ago. So overhead counts from the resume on, and
  // elapsed time contains all of the round.
  spent_seconds_ = spent_seconds - steps_seconds;
  steps_ = std::move(steps);
}

void RoundTimer::add_step(double seconds) {
  steps_.push_back(seconds);
}

void RoundTimer::add_wait(double seconds) {
  waited_seconds_ += seconds;
}

double RoundTimer::elapsed_seconds() const {
  return spent_seconds_ + clock_.now_seconds() - began_seconds_;
}

double RoundTimer::overhead_seconds() const {
  const double used_seconds = compute_seconds() + waited_seconds_;
  return std::max(0.0, clock_.now_seconds() - began_seconds_ - used_seconds);
}

double RoundTimer::compute_seconds() const {
  return std::accumulate(steps_.begin(), steps_.end(), 0.0);
}

double RoundTimer::measured_step_seconds() const {
  return steps_.size() < 2 ? 0 : heterogeneity::measured_step_seconds(steps_);
}

double RoundTimer::step_seconds() const {
  return steps_.empty() ? 0 : heterogeneity::typical_step_seconds(steps_);
}

}  // namespace farstep
