// Tasks of which only the newest counts, one after the other on threads of their own.
//
// One owner thread makes all calls. None calls a task itself.
#pragma once

#include <functional>
#include <stop_token>
#include <thread>

namespace farstep {

class NewestTask {
 public:
  NewestTask() = default;
  // Requests the stop of the task, and waits for its end.
  ~NewestTask() = default;
  NewestTask(const NewestTask&) = delete;
  NewestTask& operator=(const NewestTask&) = delete;

  // Requests the stop of the task before, and runs `task` when that has ended. Does not wait for
  // either. A task that is replaced before it has begun does not run. `task` must not throw.
  void replace(std::function<void(const std::stop_token&)> task);
  // Waits for the end of the task. Requests its stop once `stop` is requested.
  void finish(const std::stop_token& stop);

 private:
  std::jthread thread_;
};

}  // namespace farstep
