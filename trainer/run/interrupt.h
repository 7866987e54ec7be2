// Ctrl-C and SIGTERM as a stop token: asked for once, a site ends its step, saves a checkpoint and
// leaves; asked for twice, the process ends at once.
#pragma once

#include <stop_token>
#include <thread>

namespace farstep {

// Make one in the process's first thread before any other thread: threads inherit its blocked
// signals, so that only the thread in here takes them.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Stop is requested at the first signal.
  std::stop_token token() const { return source_.get_token(); }

 private:
  void watch();

  std::stop_source source_;
  std::thread watcher_;
};

}  // namespace farstep
