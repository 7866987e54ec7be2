// Learns how fast a site's uplink is from the times in which it filled it, so that its connections
// can be paced to it: then no queue builds up in the line, which would delay, and in the end drop,
// what every connection sends.
//
// A line is full while a queue stands before it: what gets through then is what it can do. Busy
// times without a queue say that the line could do more, or just what the pace is: the pace rises
// from one to the next until a queue comes, and later once in a while. Fed with the sends of all
// connections. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "wan/transport/line_sample.h"

namespace farstep {

// Bits of TCP payload a second, by peer.
using Paces = std::map<int, double>;

class UplinkPacer {
 public:
  // A message to a peer starts to be sent.
  void begin(double now_seconds);
  // What the kernel says of all connections together, from time to time while something is under
  // way, and when the last message has gone, before end() is told.
  void look(const LineSample& sample);
  // A message of `bytes` has gone. Returns the paces from now on if a busy time ends that changes
  // them: one of a second at least, and of ten round trips, over ways of two milliseconds or more.
  // Shares follow what each peer got in it; who got nothing keeps what it has.
  std::optional<Paces> end(double now_seconds, int peer, uint64_t bytes);

  // There is no pace from now on: what was learned does not hold any more.
  void forget();

  // Whether the message that ends next is the last one under way.
  bool ends_with_next() const { return under_way_ == 1; }

 private:
  // Learns from a busy time; whether there is a new pace.
  bool learn();

  int64_t under_way_ = 0;
  // Of this busy time.
  double began_seconds_ = 0;
  double least_rtt_seconds_ = 0;
  std::optional<LineSample> queued_since_;
  double queue_seconds_ = 0, line_ = 0;  // the longest time with a queue, and bits a second in it
  std::map<int, uint64_t> bytes_;        // by peer

  std::optional<double> pace_;  // bits a second of all peers together
  bool is_known_ = false;       // the line's speed, not only that it can do this
  int until_rise_ = 0;          // busy times without a queue
  bool was_exception_ = false;  // the last busy time was much slower than the pace
};

}  // namespace farstep
