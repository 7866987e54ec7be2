// Turns SIGINT, SIGTERM and SIGHUP into a stop token. After the first signal a site ends its step,
// saves a checkpoint and leaves. The second signal ends the process at once, but for a repeated
// SIGHUP, which has no effect.
#pragma once

#include <stop_token>
#include <thread>

namespace farstep {

// Must be made in the process's first thread, before any other thread. Later threads inherit its
// blocked signals, so only its own thread receives them.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The token of the stop that the first signal requests.
  std::stop_token token() const { return source_.get_token(); }

 private:
  void watch();

  std::stop_source source_;
  std::thread watcher_;
};

}  // namespace farstep
