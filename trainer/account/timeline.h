// What a site did at which time, in bounded memory: exactly for the newest activities, and the
// coarser the older they are.
//
// Times are in the coordinator's clock. A value; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "trainer/telemetry/event.h"

namespace farstep {

// The kinds of activity: the causes, and computing.
inline constexpr std::size_t kKinds = kSpanCauses + 1;
inline constexpr std::size_t kCompute = kSpanCauses;

struct Interval {
  double start = 0, end = 0;
};

// One activity of a site from `start` to `end`.
struct Activity : Interval {
  std::size_t kind = kCompute;
  std::size_t process = 0;  // its place among the timeline's
};

// Neighbouring activities of one process together: how long each kind was.
struct Stretch : Interval {
  std::array<float, kKinds> seconds{};
  std::size_t process = 0;
};

class Timeline {
 public:
  // Counts the next record that counts.
  void add(const Record& record);

  // The newest activities, in the order of their records.
  const std::deque<Activity>& recent() const { return recent_; }
  // Those before, likewise. A stretch of several activities is no longer than a thousandth of the
  // running time since then.
  const std::vector<Stretch>& older() const { return older_; }
  // Times during which a process of the site ran: from its first record to its last.
  const std::vector<Interval>& processes() const { return processes_; }
  // The time of each round's activities; round 0 is before the first.
  const std::map<int64_t, Interval>& rounds() const { return rounds_; }

 private:
  void add(Activity activity, int64_t round);
  void move_to_older();
  void join_older();

  double offset_ = 0;  // of the process's clock
  std::deque<Activity> recent_;
  std::vector<Stretch> older_;
  std::size_t join_at_ = 0;  // so many are joined
  std::vector<Interval> processes_;
  std::map<int64_t, Interval> rounds_;
};

}  // namespace farstep
