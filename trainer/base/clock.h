// Time behind an interface, so that tests and the simulator run on time of their own.
//
// Seconds are doubles. `now_seconds` never goes back and has no meaning between processes;
// `unix_seconds` is for records that are compared between sites.
#pragma once

#include <atomic>

namespace farstep {

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic seconds since an arbitrary start.
  virtual double now_seconds() const = 0;
  // Seconds since 1970 on the same steady scale: anchored once, so differences equal now_seconds'.
  virtual double unix_seconds() const = 0;
  // Returns once now_seconds() >= `deadline_seconds`; at once if that is past.
  virtual void sleep_until(double deadline_seconds) = 0;
};

// The machine's steady clock. All methods may be called concurrently.
class RealClock : public Clock {
 public:
  RealClock();
  double now_seconds() const override;
  double unix_seconds() const override;
  void sleep_until(double deadline_seconds) override;

 private:
  double unix_anchor_seconds_;  // unix time at now_seconds() == 0
};

// Time that moves only when told to. All methods may be called concurrently.
class FakeClock : public Clock {
 public:
  explicit FakeClock(double start_seconds = 0) : now_(start_seconds) {}
  double now_seconds() const override { return now_; }
  double unix_seconds() const override { return now_; }
  // Moves time to the deadline instead of waiting.
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
