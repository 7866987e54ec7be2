// The thread of a task waits for the one before, so that the owner need not.
#include "trainer/base/newest_task.h"

#include <utility>

namespace farstep {

void NewestTask::replace(std::function<void(const std::stop_token&)> task) {
  thread_.request_stop();
  thread_ = std::jthread(
      [before = std::move(thread_), task = std::move(task)](const std::stop_token& stop) mutable {
        if (before.joinable()) before.join();
        if (!stop.stop_requested()) task(stop);
      });
}

void NewestTask::finish(const std::stop_token& stop) {
  if (!thread_.joinable()) return;
  const std::stop_callback give_up(stop, [this] { thread_.request_stop(); });
  thread_.join();
}

}  // namespace farstep
