// Notices that the way to a peer carries nothing though bytes wait for an acknowledgement, and
// whether it does again. A value without a clock; one thread at a time uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

namespace farstep::wan {

class StallWatch {
 public:
  // Far above round trips, and below what a user notices.
  static constexpr double kStandSeconds = 5;

  // Takes `is_unanswered` and `answers` of SocketFacts. Times must not decrease.
  void look(double now_seconds, bool is_unanswered, uint64_t answers);
  // Whether nothing was acknowledged for kStandSeconds.
  bool stands() const { return stands_; }
  // Whether that has changed with the last look.
  bool has_changed() const { return has_changed_; }

 private:
  double answered_seconds_ = 0;
  uint64_t answers_ = 0;
  bool is_unanswered_ = false, stands_ = false, has_changed_ = false;
};

// Calls `work` on a thread of its own every second, until that is asked to stop.
std::jthread every_second(std::function<void()> work);

}  // namespace farstep::wan
