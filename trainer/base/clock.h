// Time behind an interface, so that tests can use a clock of their own.
//
// Times are seconds in doubles. now_seconds() never decreases and is comparable within one process
// only. unix_seconds() is for records that are compared between sites.
#pragma once

namespace farstep {

class Clock {
 public:
  virtual ~Clock() = default;
  // Returns monotonic seconds since an arbitrary start.
  virtual double now_seconds() const = 0;
  // Returns seconds since 1970. They are anchored once, so that differences equal now_seconds()'s.
  virtual double unix_seconds() const = 0;
  // Waits until now_seconds() >= `deadline_seconds`; returns at once if that has passed.
  virtual void sleep_until(double deadline_seconds) = 0;
};

// The machine's steady clock. Thread-safe.
class RealClock : public Clock {
 public:
  RealClock();
  double now_seconds() const override;
  double unix_seconds() const override;
  void sleep_until(double deadline_seconds) override;

 private:
  double unix_anchor_seconds_;  // unix time at now_seconds() == 0
};

}  // namespace farstep
