// The kernel's figures of one or more connections at one moment.
//
// A round trip well above the least one means that packets wait in a queue. If they wait on the
// ways to all peers while the site sends, the site's own line is full.
#pragma once

#include <algorithm>
#include <cstdint>

namespace farstep::wan {

struct LineSample {
  double now_seconds = 0;
  // Since the connections opened. Delivered bytes include those that arrived behind a lost packet.
  uint64_t delivered_bytes = 0, retransmitted_bytes = 0;
  double least_rtt_seconds = 0;  // since they opened; of the connection where it is longest
  // Smoothed round trip over least round trip: the smallest and the largest of all connections.
  double least_stretch = 1, most_stretch = 1;
  bool is_sending = false;  // whether a connection has bytes that are not acknowledged

  bool has_queue_everywhere() const { return least_stretch > kStretched; }
  bool has_queue_somewhere() const { return most_stretch > kStretched; }

  // Adds another connection's sample of the same moment.
  LineSample& operator+=(const LineSample& other) {
    const bool is_first = least_rtt_seconds == 0;
    now_seconds = other.now_seconds;
    delivered_bytes += other.delivered_bytes;
    retransmitted_bytes += other.retransmitted_bytes;
    least_rtt_seconds = std::max(least_rtt_seconds, other.least_rtt_seconds);
    least_stretch = is_first ? other.least_stretch : std::min(least_stretch, other.least_stretch);
    most_stretch = std::max(most_stretch, other.most_stretch);
    is_sending = is_sending || other.is_sending;
    return *this;
  }

  // Above the variation of round trips without a queue, and far below a queue that drops packets.
  static constexpr double kStretched = 1.25;
};

}  // namespace farstep::wan
