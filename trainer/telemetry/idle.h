// Accounts for a site's time by cause and by round.
//
// Idle is all time in which the site's devices had no training work, whatever the cause. Time that
// was lost to failures, and time that nothing explains, is reported too. Pure functions;
// thread-safe.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/telemetry/event.h"

namespace farstep {

// Seconds of training work, idle seconds by cause, and the seconds of serving, which are no idle
// time.
struct TimeUse {
  double compute_seconds = 0;
  std::array<double, kSpanCauses> seconds_by_cause{};

  double& seconds(SpanCause cause) { return seconds_by_cause[static_cast<std::size_t>(cause)]; }
  double seconds(SpanCause cause) const {
    return seconds_by_cause[static_cast<std::size_t>(cause)];
  }
  double idle_seconds() const;
  double serve_seconds() const { return seconds(SpanCause::kServe); }
  double total_seconds() const { return compute_seconds + serve_seconds() + idle_seconds(); }
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
  // Outages, and training that was abandoned and done again.
  double lost_seconds = 0;
  // Sum over the site's processes, from the start to the last record that was not abandoned; and
  // lost_seconds.
  double wall_seconds = 0;

  // Returns one device's idle over total time. Its idle time includes waits for other devices.
  double device_idle_fraction(std::size_t device) const;
  // Returns the wall time that is neither lost nor in a step or span.
  double unexplained_seconds() const { return wall_seconds - lost_seconds - total.total_seconds(); }
};

// Returns the account of one site's records, after without_abandoned(), as if nothing had been
// lost. A step's wait for its batch counts as `data`.
SiteTime account_time(std::span<const Record> records);

// Adds to the account of a site what was lost to failures: the part of its run's time that the
// account lacks. `file` has all records of the site, abandoned ones too. The run's time is from the
// first record to the last. The pause after a process that was done or was interrupted is no part
// of it. Nor is an earlier run in the same file: one of another name, or one with a checkpoint of
// work, followed by a fresh start.
void add_losses(std::span<const Record> file, SiteTime& time);

}  // namespace farstep
