#include "trainer/site/site_trainer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "trainer/base/memory/out_of_memory.h"

namespace farstep {

namespace {

// The round's first step of so many measures the gradient's noise, which costs a pass over the
// gradient: in each step that would be up to 1 % of a small model's time
// (docs/results/noise_scale.md). By number, so that a resumed round measures the same steps.
constexpr int64_t kStepsOfAMeasurement = 4;

}  // namespace

SiteTrainer::SiteTrainer(InnerTraining& inner, Recorder& recorder, const Clock& clock)
    : inner_(inner), recorder_(recorder), timer_(clock) {}

void SiteTrainer::begin(const SiteWork& work) {
  work_ = work;
  work_.plan.micro_batch = std::min(work_.plan.micro_batch, most_micro_batch_);
  inner_.begin(work_.draws);
}

bool SiteTrainer::wants_step() const {
  const auto& plan = work_.plan;
  // The round is planned again before its end, and until then nobody knows how long it is.
  if (work_.is_measuring) return true;
  if (!work_.deadline_seconds) return steps_done_ < plan.local_steps;
  // Every site brings at least one step, as a sync without work has no averaging weight.
  if (steps_done_ == 0) return true;
  if (steps_done_ >= plan.most_steps) return false;
  const double step_seconds =
      timer_.step_seconds() > 0 ? timer_.step_seconds() : plan.step_seconds.value_or(0);
  // A step under way has only begun, so its time is added as an estimate.
  const double spent_seconds =
      timer_.elapsed_seconds() + (inner_.is_step_under_way() ? step_seconds : 0);
  return heterogeneity::has_room_for_step(*work_.deadline_seconds, spent_seconds, step_seconds,
                                          work_.slack_seconds);
}

void SiteTrainer::step(SiteReduction* gradients, const std::stop_token& stop) {
  const auto& plan = work_.plan;
  const double position = position_after(work_.round - 1, steps_done_, plan.local_steps);
  const StepOrder order{.round = work_.round,
                        .step = steps_done_ + 1,
                        .batch = plan.batch,
                        .micro_batch = plan.micro_batch,
                        .progress = position / static_cast<double>(work_.rounds),
                        .rate_share = rate_share(work_.rate, work_.cycle, position),
                        .learning_rate_factor = work_.learning_rate_factor,
                        .measures_noise = steps_done_ % kStepsOfAMeasurement == 0};
  // Before the step, which counts in the warm-up.
  const double factor = order.learning_rate_factor * inner_.warm_up_factor();
  record(take(order, gradients, stop));
  learning_rate_ = work_.rate.peak_learning_rate * order.rate_share * factor;
  ++steps_done_;
}

std::optional<StepDone> SiteTrainer::take(StepOrder order, SiteReduction* gradients,
                                          const std::stop_token& stop) {
  for (;;) {
    try {
      return inner_.step(order, gradients, stop);
    } catch (const NoRoomError& error) {
      if (gradients || error.largest_micro_batch() == 0) throw;
      most_micro_batch_ = error.largest_micro_batch();
      order.micro_batch = work_.plan.micro_batch = most_micro_batch_;
      spdlog::warn("{}. This site goes on with that", error.what());
    }
  }
}

void SiteTrainer::finish() {
  // A GPU is a step ahead of its results.
  record(inner_.finish());
}

void SiteTrainer::begin_anew() {
  finish();
  spdlog::warn(
      "this site begins anew from theta_global, with fresh moments: its learning rate rises for {} "
      "steps",
      inner_.begin_anew());
}

void SiteTrainer::record(const std::optional<StepDone>& done) {
  if (!done) return;
  const auto& event = done->event;
  timer_.add_step(event.seconds);
  loss_sum_ += event.loss.value_or(0);
  if (done->noise) noise_ += *done->noise;
  if (done->waited_seconds > 0) {
    timer_.add_wait(done->waited_seconds);
    recorder_.record(SpanEvent{.cause = SpanCause::kWait,
                               .round = event.round,
                               .start = event.start - done->waited_seconds,
                               .seconds = done->waited_seconds});
  }
  if (done->held_seconds > 0) {
    recorder_.record(SpanEvent{.cause = SpanCause::kCheckpoint,
                               .round = event.round,
                               .start = event.start + event.seconds,
                               .seconds = done->held_seconds});
  }
  recorder_.record(event);
}

heterogeneity::RoundTiming SiteTrainer::timing() const {
  return {.steps = steps_done_,
          .batch = work_.plan.batch,
          .micro_batch = work_.plan.micro_batch,
          .step_seconds = timer_.step_seconds(),
          .overhead_seconds = timer_.overhead_seconds(),
          .noise = noise_};
}

void SiteTrainer::end_round(double own_seconds) {
  steps_done_ = 0;
  loss_sum_ = 0;
  noise_ = {};
  timer_.start_round(own_seconds);
}

void SiteTrainer::resume(int64_t steps, double loss_sum, double spent_seconds,
                         std::vector<double> step_seconds,
                         const heterogeneity::GradientNoise& noise) {
  steps_done_ = steps;
  loss_sum_ = loss_sum;
  noise_ = noise;
  timer_.resume_round(spent_seconds, std::move(step_seconds));
}

}  // namespace farstep
