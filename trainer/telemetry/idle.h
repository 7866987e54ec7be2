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

// Adds up one site's time, record by record. Not thread-safe.
class TimeAccount {
 public:
  // Counts the next of the records that without_abandoned() keeps. A step's wait for its batch
  // counts as `data`.
  void add(const Record& record);
  // States the run's time by RunSeconds. What the account lacks of it was lost to failures.
  void set_run_seconds(double seconds);

  const SiteTime& time() const { return time_; }

 private:
  void count_step(const StepEvent& step);

  SiteTime time_;
  double closed_seconds_ = 0;  // of the processes before the present one
  double process_start_ = 0, process_end_ = 0;
  double run_seconds_ = 0;
};

// Measures how long a site's run took, over all records of its file, abandoned ones too: from the
// first record to the last. The pause after a process that was done or was interrupted is no part
// of it. Nor is an earlier run in the same file: one of another name, or one with a checkpoint of
// work, followed by a fresh start. Not thread-safe.
class RunSeconds {
 public:
  void add(const Record& record);
  double seconds() const { return seconds_; }

 private:
  bool begins_other_run(const RunEvent& start) const;

  std::string run_;
  bool has_records_ = false, has_saved_work_ = false;
  bool has_ended_on_purpose_ = false;  // by the record before
  double time_ = 0, seconds_ = 0;
};

// Returns the account of one site's records, after without_abandoned(), as if nothing had been
// lost.
SiteTime account_time(std::span<const Record> records);

}  // namespace farstep
