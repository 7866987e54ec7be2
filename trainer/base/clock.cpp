#include "trainer/base/clock.h"

#include <chrono>
#include <thread>

namespace farstep {

namespace {

double seconds_of(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

// Read once: the system's clock may jump during a run, and times of events must not.
RealClock::RealClock()
    : unix_anchor_seconds_(seconds_of(std::chrono::system_clock::now().time_since_epoch()) -
                           now_seconds()) {}

double RealClock::now_seconds() const {
  return seconds_of(std::chrono::steady_clock::now().time_since_epoch());
}

double RealClock::unix_seconds() const {
  return unix_anchor_seconds_ + now_seconds();
}

void RealClock::sleep_until(double deadline_seconds) {
  // Rounded up: callers rely on now_seconds() >= deadline afterwards.
  std::this_thread::sleep_until(
      std::chrono::steady_clock::time_point(std::chrono::ceil<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(deadline_seconds))));
}

}  // namespace farstep
