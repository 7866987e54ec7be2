// Turns SIGINT, SIGTERM and SIGHUP into a stop token. After the first signal a site abandons the
// step under way, saves a checkpoint of the step before and leaves. The second signal ends the
// process at once, but for a repeated SIGHUP, which has no effect.
#pragma once

#include <stop_token>
#include <string>
#include <thread>

namespace farstep {

// Must be made in the process's first thread, before any other thread. Later threads inherit its
// blocked signals, so only its own thread receives them.
class Interrupt {
 public:
  // `text` is logged at the first signal.
  explicit Interrupt(std::string text =
                         "interrupted: ending in good order, with what is done saved; once more "
                         "ends at once");
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The token of the stop that the first signal requests.
  std::stop_token token() const { return source_.get_token(); }

 private:
  void watch();

  const std::string text_;
  std::stop_source source_;
  std::thread watcher_;
};

}  // namespace farstep
