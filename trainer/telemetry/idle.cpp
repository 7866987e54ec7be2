#include "trainer/telemetry/idle.h"

#include <algorithm>
#include <numeric>

namespace farstep {

double TimeUse::idle_seconds() const {
  return std::accumulate(seconds_by_cause.begin(), seconds_by_cause.end(), 0.0);
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

// A `run` record begins a process. The time between a crash and the restart belongs to no process.
// Sums of spans, not the rest of the wall time: what no span explains is shown as such.
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

}  // namespace farstep
