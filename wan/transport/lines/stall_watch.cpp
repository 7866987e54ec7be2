// The kernel knows when it last heard an acknowledgement, but not since when it waits for one: on
// an idle connection both are far apart. So what changes between two looks is what counts.
#include "wan/transport/lines/stall_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

namespace farstep::wan {

void StallWatch::look(double now_seconds, bool is_unanswered, uint64_t answers) {
  const bool goes_on = is_unanswered_ && is_unanswered && answers == answers_;
  if (!goes_on) answered_seconds_ = now_seconds;
  is_unanswered_ = is_unanswered;
  answers_ = answers;
  const bool stood = std::exchange(stands_, now_seconds - answered_seconds_ >= kStandSeconds);
  has_changed_ = stood != stands_;
}

std::jthread every_second(std::function<void()> work) {
  return std::jthread([work = std::move(work)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    const auto is_over = [&] { return stop.stop_requested(); };
    while (!never.wait_for(lock, stop, std::chrono::seconds(1), is_over)) work();
  });
}

}  // namespace farstep::wan
