// A clock that tests move.
#pragma once

#include <atomic>

#include "trainer/base/clock.h"

namespace farstep {

// A clock that advances only when it is told to. Thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(double start_seconds = 0) : now_(start_seconds) {}
  double now_seconds() const override { return now_; }
  double unix_seconds() const override { return now_; }
  // Sets the time to the deadline instead of waiting.
  void sleep_until(double deadline_seconds) override {
    double now = now_;
    while (now < deadline_seconds && !now_.compare_exchange_weak(now, deadline_seconds)) {
    }
  }
  void advance(double seconds) { now_ += seconds; }

 private:
  std::atomic<double> now_;
};

}  // namespace farstep
