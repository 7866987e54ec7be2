// How a site stops in the middle of a round: at once, or after it has handed in what it has.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace farstep {

// The two moments of a stop. From `asked` on no inner step begins. Until `gives_up` the site may
// wait for the others at the round's syncs. If both are one token, the site leaves before the sync.
struct RoundStop {
  RoundStop() = default;
  RoundStop(const std::stop_token& at_once) : asked(at_once), gives_up(at_once) {}
  RoundStop(std::stop_token asked_at, std::stop_token gives_up_at)
      : asked(std::move(asked_at)), gives_up(std::move(gives_up_at)) {}

  std::stop_token asked, gives_up;
};

// The time that a site has for handing in, from the moment at which it is asked to stop.
// Thread-safe.
class HandInTime {
 public:
  // The time ends `seconds` after `asked`, or when `is_in_vain` returns true, which a thread calls
  // every `look_seconds` from then on. With 0 seconds there is no time, and no thread.
  HandInTime(const std::stop_token& asked, double seconds, double look_seconds,
             std::function<bool()> is_in_vain);
  HandInTime(const HandInTime&) = delete;
  HandInTime& operator=(const HandInTime&) = delete;

  const RoundStop& stop() const { return stop_; }

 private:
  // Run on the thread, until the time is over or `end` is requested.
  void watch(const std::stop_token& end, double seconds, double look_seconds,
             const std::function<bool()>& is_in_vain);

  std::stop_source over_;
  const RoundStop stop_;
  std::mutex mutex_;  // guards nothing but the waits
  std::condition_variable_any changed_;
  std::jthread watcher_;  // the last member: it uses all others
};

}  // namespace farstep
