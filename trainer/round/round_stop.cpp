// A stop that hands in has two moments. The first is the caller's token. The second comes from a
// watcher thread, when the time is up or waiting has become useless, and ends the waits for other
// sites.
#include "trainer/round/round_stop.h"

#include <algorithm>
#include <chrono>

namespace farstep {

namespace {

using WatchClock = std::chrono::steady_clock;

WatchClock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<WatchClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

HandInTime::HandInTime(const std::stop_token& asked, double seconds, double look_seconds,
                       std::function<bool()> is_in_vain)
    : stop_(seconds > 0 ? RoundStop(asked, over_.get_token()) : RoundStop(asked)) {
  if (seconds == 0) return;
  watcher_ = std::jthread([=, this, in_vain = std::move(is_in_vain)](const std::stop_token& end) {
    watch(end, seconds, look_seconds, in_vain);
  });
}

void HandInTime::watch(const std::stop_token& end, double seconds, double look_seconds,
                       const std::function<bool()>& is_in_vain) {
  // Made before the lock and so destroyed after it: the call takes the same mutex.
  const std::stop_callback wake(stop_.asked, [this] {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, end, [this] { return stop_.asked.stop_requested(); })) return;
  const auto until = WatchClock::now() + duration_of(seconds);
  for (auto now = WatchClock::now(); now < until && !is_in_vain(); now = WatchClock::now()) {
    changed_.wait_until(lock, end, std::min(until, now + duration_of(look_seconds)),
                        [] { return false; });
    if (end.stop_requested()) return;
  }
  over_.request_stop();
}

}  // namespace farstep
