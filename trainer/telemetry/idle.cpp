#include "trainer/telemetry/idle.h"

#include <algorithm>

namespace farstep {

double TimeUse::idle_seconds() const {
  double sum = 0;
  for (std::size_t i = 0; i < kSpanCauses; ++i) {
    if (static_cast<SpanCause>(i) != SpanCause::kServe) sum += seconds_by_cause[i];
  }
  return sum;
}

double TimeUse::idle_fraction() const {
  const double total = total_seconds();
  return total > 0 ? idle_seconds() / total : 0;
}

TimeUse& TimeUse::operator+=(const TimeUse& other) {
  compute_seconds += other.compute_seconds;
  for (std::size_t i = 0; i < kSpanCauses; ++i) seconds_by_cause[i] += other.seconds_by_cause[i];
  return *this;
}

double SiteTime::device_idle_fraction(std::size_t device) const {
  const double seconds = total.total_seconds();
  return seconds > 0 ? 1 - device_seconds[device] / seconds : 0;
}

// Adds up spans instead of subtracting training from the wall time: time that no span explains is
// then shown as such, and a forgotten span does not pass for idle time. A `run` record begins a
// process; RunSeconds counts the time between a crash and the restart.
void TimeAccount::add(const Record& record) {
  if (std::holds_alternative<RunEvent>(record.event)) {
    closed_seconds_ += process_end_ - process_start_;
    process_start_ = record.time;
  } else if (const auto* step = std::get_if<StepEvent>(&record.event)) {
    count_step(*step);
  } else if (const auto* span = std::get_if<SpanEvent>(&record.event)) {
    time_.rounds[span->round].seconds(span->cause) += span->seconds;
    time_.total.seconds(span->cause) += span->seconds;
  }
  process_end_ = record.time;
  set_run_seconds(run_seconds_);
}

void TimeAccount::count_step(const StepEvent& step) {
  for (auto* use : {&time_.rounds[step.round], &time_.total}) {
    use->compute_seconds += step.seconds;
    use->seconds(SpanCause::kData) += step.data_seconds;
  }
  auto& devices = time_.device_seconds;
  devices.resize(std::max(devices.size(), step.device_seconds.size()));
  for (std::size_t device = 0; device < step.device_seconds.size(); ++device) {
    devices[device] += step.device_seconds[device];
  }
}

// The file has all that was done, the account only what counts. The difference was done again, or
// was spent between two processes.
void TimeAccount::set_run_seconds(double seconds) {
  run_seconds_ = seconds;
  const double kept_seconds = closed_seconds_ + process_end_ - process_start_;
  time_.lost_seconds = std::max(0.0, seconds - kept_seconds);
  time_.wall_seconds = kept_seconds + time_.lost_seconds;
}

void RunSeconds::add(const Record& record) {
  const auto* start = std::get_if<RunEvent>(&record.event);
  if (!has_records_ || (start != nullptr && begins_other_run(*start))) {
    run_ = start != nullptr ? start->run : "";
    has_records_ = true;
    has_saved_work_ = false;
    seconds_ = 0;
  } else if (start == nullptr || !has_ended_on_purpose_) {
    // Also over the border of two processes: the outage lies there.
    seconds_ += record.time - time_;
  }
  if (const auto* saved = std::get_if<CheckpointEvent>(&record.event)) {
    has_saved_work_ = has_saved_work_ || saved->round > 0 || saved->step > 0;
  }
  // A person ended the process, or nothing was left to do.
  const auto* end = std::get_if<EndEvent>(&record.event);
  has_ended_on_purpose_ =
      end != nullptr && (end->outcome == Outcome::kDone || end->outcome == Outcome::kInterrupted);
  time_ = record.time;
}

// A process that was lost before its first checkpoint begins anew; one that had saved its work
// would have gone on from there.
bool RunSeconds::begins_other_run(const RunEvent& start) const {
  if (start.run != run_) return true;
  return start.start_round == 0 && start.start_step == 0 && has_saved_work_;
}

SiteTime account_time(std::span<const Record> records) {
  TimeAccount account;
  for (const auto& record : records) account.add(record);
  return account.time();
}

}  // namespace farstep
