// A site's own part of a round: its inner steps, their times, and the decision when to stop.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "heterogeneity/knowledge/round_timing.h"
#include "heterogeneity/policy/plan.h"
#include "trainer/base/clock.h"
#include "trainer/rate/rate_schedule.h"
#include "trainer/site/inner_training.h"
#include "trainer/site/round_timer.h"
#include "trainer/telemetry/recorder.h"

namespace farstep {

// A site's work in a round.
struct SiteWork {
  int64_t round = 1;   // from 1
  int64_t rounds = 1;  // of the run
  heterogeneity::SitePlan plan;
  StepDraws draws;            // the data of the steps that follow
  bool is_measuring = false;  // the rest is planned after a few steps, which the caller counts
  // The round ends by this deadline, and after plan.most_steps at the latest. nullopt: it ends
  // after plan.local_steps.
  std::optional<double> deadline_seconds = {};
  double slack_seconds = 0;  // the last step may end later by this
  RateConfig rate = {};
  RateCycle cycle = {};
  double learning_rate_factor = 1;  // multiplies the schedule's rate
};

class SiteTrainer {
 public:
  // All arguments must outlive this.
  SiteTrainer(InnerTraining& inner, Recorder& recorder, const Clock& clock);

  // Begins a round. Also continues it after a resume, or with a new plan after steps_done() steps.
  void begin(const SiteWork& work);
  // Returns whether the round has another inner step.
  bool wants_step() const;
  // Takes the round's next step, and records the step that has finished meanwhile. If a device has
  // no memory for the plan's micro-batch, this step and all later ones have the largest that fits.
  // Only with `gradients` it throws NoRoomError, as other sites cannot begin the step again. Throws
  // Stopped, and is as before, if `stop` is requested in the middle of the step.
  void step(SiteReduction* gradients, const std::stop_token& stop);
  // Waits for the step under way, if there is one, and records it.
  void finish();
  // Lets the next step begin with fresh moments, after finish().
  void begin_anew();

  int64_t steps_done() const { return steps_done_; }              // of the round
  int64_t micro_batch() const { return work_.plan.micro_batch; }  // of the next step
  double learning_rate() const { return learning_rate_; }         // of the last step
  double loss_sum() const { return loss_sum_; }                   // of the recorded steps
  const heterogeneity::GradientNoise& noise() const {
    return noise_;
  }  // of those that were measured
  // Returns the timing of the round so far, without link figures.
  heterogeneity::RoundTiming timing() const;
  RoundTimer& timer() { return timer_; }
  const RoundTimer& timer() const { return timer_; }
  LocalTheta& theta() { return inner_.theta(); }
  std::span<float> gradients() { return inner_.gradients(); }

  // Ends the round. The next begins now, or began `own_seconds` ago with the site's own work in the
  // sync.
  void end_round(double own_seconds);
  // Continues an interrupted round. The site had done `steps`, with this sum of losses and this
  // noise, and had spent `spent_seconds` in all and `step_seconds` in its steps.
  void resume(int64_t steps, double loss_sum, double spent_seconds,
              std::vector<double> step_seconds, const heterogeneity::GradientNoise& noise = {});

 private:
  std::optional<StepDone> take(StepOrder order, SiteReduction* gradients,
                               const std::stop_token& stop);
  void record(const std::optional<StepDone>& done);

  InnerTraining& inner_;
  Recorder& recorder_;
  RoundTimer timer_;
  SiteWork work_;
  int64_t most_micro_batch_ = std::numeric_limits<int64_t>::max();  // for which there is memory
  int64_t steps_done_ = 0;
  double learning_rate_ = 0;
  double loss_sum_ = 0;
  heterogeneity::GradientNoise noise_;
};

}  // namespace farstep
