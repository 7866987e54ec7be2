// Learns how fast a site's uplink is from the times in which it sent all it could, so that its
// connections can be paced to it: then no queue builds up in the line, which would delay, and in
// the end drop, what every connection sends.
//
// Fed with the sends of all connections. Not thread-safe; its owner's lock guards it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace farstep {

// Bits a second, by peer.
using Paces = std::map<int, double>;

class UplinkPacer {
 public:
  // A message to a peer starts to be sent, or has arrived there.
  void begin(double now_seconds);
  // Returns the paces from now on if a busy time ends that was long enough to learn from: of a
  // second, and of ten round trips, over ways of at least two milliseconds. Shares follow what each
  // peer got in it; who got nothing has none.
  std::optional<Paces> end(double now_seconds, int peer, uint64_t bytes, double rtt_seconds);

 private:
  // Bits a second of all peers together, after a busy time that reached `reached`.
  double next_pace(double reached);

  int64_t under_way_ = 0;
  double began_seconds_ = 0;
  double rtt_seconds_ = 0;
  std::map<int, uint64_t> bytes_;  // of this busy time, by peer
  std::optional<double> pace_;
  bool is_searching_ = true;    // until the line, not the pace, was the limit
  bool was_exception_ = false;  // the last busy time was much slower than the pace
};

}  // namespace farstep
