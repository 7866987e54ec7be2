// Learns the rate of a site's uplink, so that its connections can be paced to it. Without a pace,
// bytes beyond the line's rate wait in its queue, delay all other packets, and are dropped in the
// end.
//
// A busy time lasts from the first message under way to the last. While a queue stands on the ways
// to all peers the line is full, and the delivered rate is the line's rate. A busy time without a
// queue shows only that the line carries at least the pace. The pace then rises from one busy time
// to the next until a queue appears, and rarely afterwards. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "wan/sockets/line_sample.h"

namespace farstep::wan {

// Bits of TCP payload a second, by peer.
using Paces = std::map<int, double>;

class UplinkPacer {
 public:
  // Must be called when a message to a peer starts to be sent.
  void begin(double now_seconds);
  // Takes a sample of all connections together. Must be called at intervals while messages are
  // under way, and before the end() of the last one.
  void observe(const LineSample& sample);
  // Must be called when a message of `bytes` has been sent. Returns the new paces if this ends a
  // busy time that changes them, else nullopt. Only busy times of at least one second and ten round
  // trips count, on ways of two milliseconds or more. The paces are in proportion to the bytes that
  // each peer got. A peer that got none keeps its pace.
  std::optional<Paces> end(double now_seconds, int peer, uint64_t bytes);

  // Discards the pace, after a change that makes the learned rate invalid.
  void forget();

  // Whether the next end() is that of the last message under way.
  bool ends_with_next() const { return under_way_ == 1; }

 private:
  // Learns from a busy time; returns whether the pace changed.
  bool learn();

  int64_t under_way_ = 0;
  // State of this busy time.
  double began_seconds_ = 0;
  double least_rtt_seconds_ = 0;
  std::optional<LineSample> queued_since_;
  bool was_sending_ = false;             // in the sample before
  double queue_seconds_ = 0, line_ = 0;  // longest time with a queue; bits a second during it
  std::map<int, uint64_t> bytes_;        // by peer

  std::optional<double> pace_;  // bits a second of all peers together
  bool is_known_ = false;       // the pace is the line's rate; otherwise a lower bound
  int until_rise_ = 0;          // busy times without a queue until the pace rises
  bool was_exception_ = false;  // the last busy time was far slower than the pace
};

}  // namespace farstep::wan
