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
// process; add_losses() counts the time between a crash and the restart.
SiteTime account_time(std::span<const Record> records) {
  SiteTime site;
  double process_start = 0;
  double process_end = 0;
  for (const auto& record : records) {
    if (std::holds_alternative<RunEvent>(record.event)) {
      site.wall_seconds += process_end - process_start;
      process_start = record.time;
    } else if (const auto* step = std::get_if<StepEvent>(&record.event)) {
      auto& round = site.rounds[step->round];
      round.compute_seconds += step->seconds;
      round.seconds(SpanCause::kData) += step->data_seconds;
      site.device_seconds.resize(std::max(site.device_seconds.size(), step->device_seconds.size()));
      for (std::size_t device = 0; device < step->device_seconds.size(); ++device) {
        site.device_seconds[device] += step->device_seconds[device];
      }
    } else if (const auto* span = std::get_if<SpanEvent>(&record.event)) {
      site.rounds[span->round].seconds(span->cause) += span->seconds;
    }
    process_end = record.time;
  }
  site.wall_seconds += process_end - process_start;
  for (const auto& [round, use] : site.rounds) site.total += use;
  return site;
}

namespace {

// A person ended the process, or nothing was left to do.
bool ends_on_purpose(const Record& record) {
  const auto* end = std::get_if<EndEvent>(&record.event);
  return end != nullptr &&
         (end->outcome == Outcome::kDone || end->outcome == Outcome::kInterrupted);
}

bool begins_other_run(std::span<const Record> before, const RunEvent& start) {
  if (std::get<RunEvent>(before.front().event).run != start.run) return true;
  if (start.start_round > 0 || start.start_step > 0) return false;
  // A process that was lost before its first checkpoint begins anew; one that had saved its work
  // would have gone on from there.
  return std::ranges::any_of(before, [](const Record& record) {
    const auto* saved = std::get_if<CheckpointEvent>(&record.event);
    return saved != nullptr && (saved->round > 0 || saved->step > 0);
  });
}

}  // namespace

void add_losses(std::span<const Record> file, SiteTime& time) {
  double seconds = 0;
  std::size_t run_begin = 0;
  for (std::size_t i = 1; i < file.size(); ++i) {
    const auto* start = std::get_if<RunEvent>(&file[i].event);
    if (start != nullptr && begins_other_run(file.subspan(run_begin, i - run_begin), *start)) {
      run_begin = i;
      seconds = 0;
    } else if (start == nullptr || !ends_on_purpose(file[i - 1])) {
      // Also over the border of two processes: the outage lies there.
      seconds += file[i].time - file[i - 1].time;
    }
  }
  // The file has all that was done, `time` only what counts. The difference was done again, or was
  // spent between two processes.
  time.lost_seconds = std::max(0.0, seconds - time.wall_seconds);
  time.wall_seconds += time.lost_seconds;
}

}  // namespace farstep
