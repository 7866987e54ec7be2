// Accounting: where the time of a site went, by cause and by round.
//
// Idle is all time in which the site's devices had no training work, whatever the cause; what
// neither computing nor a cause explains is shown, not hidden. Pure functions; thread-safe.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/telemetry/event.h"

namespace farstep {

// Seconds of training work, and of everything else by cause.
struct TimeUse {
  double compute_seconds = 0;
  std::array<double, kSpanCauses> seconds_by_cause{};

  double& seconds(SpanCause cause) { return seconds_by_cause[static_cast<std::size_t>(cause)]; }
  double seconds(SpanCause cause) const {
    return seconds_by_cause[static_cast<std::size_t>(cause)];
  }
  double idle_seconds() const;
  double total_seconds() const { return compute_seconds + idle_seconds(); }
  // Idle by total; 0 if there is no time at all.
  double idle_fraction() const;
  TimeUse& operator+=(const TimeUse& other);
};

// One site's time.
struct SiteTime {
  TimeUse total;
  std::map<int64_t, TimeUse> rounds;  // by round; 0 is before the first
  // Seconds of training work of each device; empty where one device did all of it.
  std::vector<double> device_seconds;
  // From each start of the site's process to its last record that counts, added up.
  double wall_seconds = 0;

  // Idle by total of one device, whose idle time includes what it waits for the others in a step.
  double device_idle_fraction(std::size_t device) const;
  // Wall time in no step and no span.
  double unexplained_seconds() const { return wall_seconds - total.total_seconds(); }
};

// The account of one site's records, which without_abandoned() has gone through. A step's wait for
// its batch counts as `data`.
SiteTime account_time(std::span<const Record> records);

}  // namespace farstep
