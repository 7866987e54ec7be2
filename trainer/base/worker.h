// A thread with a queue of tasks. The future of a task rethrows the task's exception.
//
// One owner thread calls submit() and the destructor. Tasks run on the worker's thread, one after
// the other, in order of submission.
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
  // Runs all queued tasks, then joins the thread.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Queues `task`; the future has its result or its exception.
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
  std::thread thread_;                       // the last member: it uses all others
};

}  // namespace farstep
