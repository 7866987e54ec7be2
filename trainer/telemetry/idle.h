// Accounts for a site's time by cause and by round.
//
// Idle is all time in which the site's devices had no training work, whatever the cause. Time that
// neither computing nor a cause explains is reported too. Pure functions; thread-safe.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/telemetry/event.h"

namespace farstep {

// Seconds of training work, and idle seconds by cause.
struct TimeUse {
  double compute_seconds = 0;
  std::array<double, kSpanCauses> seconds_by_cause{};

  double& seconds(SpanCause cause) { return seconds_by_cause[static_cast<std::size_t>(cause)]; }
  double seconds(SpanCause cause) const {
    return seconds_by_cause[static_cast<std::size_t>(cause)];
  }
  double idle_seconds() const;
  double total_seconds() const { return compute_seconds + idle_seconds(); }
  // Returns idle over total seconds; 0 if there are none.
  double idle_fraction() const;
  TimeUse& operator+=(const TimeUse& other);
};

// One site's time.
struct SiteTime {
  TimeUse total;
  std::map<int64_t, TimeUse> rounds;  // by round; 0 is before the first
  // Seconds of training work of each device; empty if the site has one device.
  std::vector<double> device_seconds;
  // Sum over the site's processes: from the start to the last record that was not abandoned.
  double wall_seconds = 0;

  // Returns one device's idle over total time. Its idle time includes waits for other devices.
  double device_idle_fraction(std::size_t device) const;
  // Returns the wall time outside all steps and spans.
  double unexplained_seconds() const { return wall_seconds - total.total_seconds(); }
};

// Returns the account of one site's records, after without_abandoned(). A step's wait for its batch
// counts as `data`.
SiteTime account_time(std::span<const Record> records);

}  // namespace farstep
