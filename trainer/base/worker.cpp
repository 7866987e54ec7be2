#include "trainer/base/worker.h"

namespace farstep {

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  // Outside the lock, so that the woken thread can take it at once.
  changed_.notify_one();
  thread_.join();
}

void Worker::enqueue(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

// Runs all queued tasks before it stops: their futures are waited for.
void Worker::run() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      // Empty means stopping here: the wait ends for no other reason without a task.
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    // Not under the lock: a task may take long, and may submit another.
    task();
  }
}

}  // namespace farstep
