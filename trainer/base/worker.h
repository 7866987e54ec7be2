// A thread with a queue of tasks. An exception of a task travels to whoever waits for it.
//
// submit() and the destructor may be called from any one owner thread; tasks run one after the
// other, in the order of submission, on the worker's thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

namespace farstep {

class Worker {
 public:
  Worker();
  // Runs what is queued, then joins.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Queues `task`; the future delivers its result or rethrows its exception.
  template <typename Task>
  auto submit(Task task) -> std::future<decltype(task())> {
    auto packaged = std::make_shared<std::packaged_task<decltype(task())()>>(std::move(task));
    auto future = packaged->get_future();
    enqueue([packaged] { (*packaged)(); });
    return future;
  }

 private:
  void enqueue(std::function<void()> task);
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::thread thread_;                       // last: starts when all else is ready
};

}  // namespace farstep
