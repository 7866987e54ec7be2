// When a site sends a request again. A copy may be lost with its connection, or because a queue was
// full; or it is still on its way, and another one would only wait behind it on a slow line. So the
// pause after a copy is the longer, the more bytes it has, and doubles with each one that is not
// answered.
#pragma once

#include <cstddef>

namespace farstep::wan {

// Times are seconds on the clock of heartbeats. Not thread-safe.
class Repetition {
 public:
  // Whether a copy may be on its way.
  bool is_sent() const { return num_copies_ > 0; }
  // Notes a copy of so many bytes.
  void note_copy(double now_seconds, std::size_t bytes, double heartbeat_seconds);
  // Notes that a copy was answered, for a request that goes on after that.
  void note_answer() { num_copies_ -= num_copies_ > 0 ? 1 : 0; }
  // Notes that all copies may be lost, as their connection has ended.
  void note_loss() { num_copies_ = 0; }
  // Whether the pause after the newest copy has passed, or none is on its way.
  bool is_paced(double now_seconds) const;
  // Whether another copy is due, now that the heartbeat that was sent at this time is answered.
  // Answers come in the order of what was sent, so an older copy is not on its way any more.
  bool is_due(double now_seconds, double answered_beat_seconds) const;

 private:
  int num_copies_ = 0;        // that may be on their way
  double sent_seconds_ = 0;   // of the newest
  double pause_seconds_ = 0;  // after it
};

}  // namespace farstep::wan
