// A small state machine over the event records, so that the board needs nothing from the sites but
// their files. The record that comes next is the only sign of what a site does until then.
#include "trainer/telemetry/site_progress.h"

#include <algorithm>

namespace farstep {

void SiteProgress::update(const Record& record) {
  time_ = record.time;
  std::visit([this](const auto& event) { take(event); }, record.event);
}

void SiteProgress::take(const RunEvent& run) {
  run_ = run;
  activity_ = SiteActivity::kTraining;
  round_ = run.start_round + 1;
  step_ = run.start_step;
  loss_.reset();
  tokens_per_second_ = waited_seconds_ = 0;
  start_time_ = time_;
  start_fraction_ = -1;  // set by the first plan
}

void SiteProgress::take(const PlanEvent& plan) {
  local_steps_ = plan.local_steps;
  activity_ = SiteActivity::kTraining;
  if (start_fraction_ < 0) start_fraction_ = fraction();
}

void SiteProgress::take(const StepEvent& step) {
  round_ = step.round;
  step_ = step.step;
  loss_ = step.loss;
  const double seconds = step.seconds + step.data_seconds;
  if (seconds > 0) {
    const double now = static_cast<double>(step.tokens) / seconds;
    // Smoothed over about ten steps, so that the figure can be read.
    tokens_per_second_ = tokens_per_second_ > 0 ? 0.9 * tokens_per_second_ + 0.1 * now : now;
  }
  // After its last step a site waits for the others, until the span of that wait is recorded.
  activity_ = step_ < local_steps_ ? SiteActivity::kTraining : SiteActivity::kWaiting;
}

void SiteProgress::take(const SpanEvent& span) {
  if (span.cause == SpanCause::kWait) {
    waited_seconds_ += span.seconds;
    activity_ = SiteActivity::kSending;
  } else if (span.cause == SpanCause::kServe) {
    activity_ = SiteActivity::kServing;
  }
}

void SiteProgress::take(const RoundEvent& round) {
  waited_seconds_ = 0;
  if (round.round < run_.rounds) {
    round_ = round.round + 1;
    step_ = 0;
  } else {
    // After the last one there is no next: all steps are done.
    round_ = run_.rounds;
    step_ = local_steps_ = std::max<int64_t>(local_steps_, 1);
  }
  activity_ = SiteActivity::kNextRound;
}

void SiteProgress::take(const EndEvent& end) {
  end_ = end;
  activity_ = SiteActivity::kEnded;
}

std::string SiteProgress::activity_text() const {
  switch (activity_) {
    case SiteActivity::kStarting:
      return "starting";
    case SiteActivity::kTraining:
      return "training";
    case SiteActivity::kWaiting:
      return "waiting";
    case SiteActivity::kServing:
      return "serving";
    case SiteActivity::kSending:
      return "sending";
    case SiteActivity::kNextRound:
      return "next round";
    case SiteActivity::kEnded:
      return std::string(name_of(end_.outcome));
  }
  return "";
}

double SiteProgress::fraction() const {
  if (run_.rounds == 0) return 0;
  const double in_round =
      local_steps_ > 0 ? static_cast<double>(step_) / static_cast<double>(local_steps_) : 0;
  const double rounds_done = static_cast<double>(round_ - 1) + std::min(in_round, 1.0);
  return std::min(rounds_done / static_cast<double>(run_.rounds), 1.0);
}

std::optional<double> SiteProgress::seconds_left() const {
  // Since this process began: after a resume the time of earlier rounds is not known here.
  const double done = fraction() - std::max(start_fraction_, 0.0);
  if (activity_ == SiteActivity::kEnded || done <= 0) return std::nullopt;
  return (time_ - start_time_) * (1 - fraction()) / done;
}

}  // namespace farstep
