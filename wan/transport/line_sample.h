// What the kernel saw of some connections at one moment.
//
// A round trip well above the least one means that packets wait in a queue on the way. If they do
// on all ways, the line that these begin with is full.
#pragma once

#include <algorithm>
#include <cstdint>

namespace farstep {

struct LineSample {
  double now_seconds = 0;
  // Since they were connected: what arrived, also where something before it got lost; what was sent
  // once more.
  uint64_t delivered_bytes = 0, retransmitted_bytes = 0;
  double least_rtt_seconds = 0;  // since they were connected; of the longest way
  // The smoothed round trip over the least one, on the way where that is least, and most.
  double least_stretch = 1, most_stretch = 1;

  bool has_queue_everywhere() const { return least_stretch > kStretched; }
  bool has_queue_somewhere() const { return most_stretch > kStretched; }

  // Takes in another connection's sample of the same moment.
  LineSample& operator+=(const LineSample& other) {
    const bool is_first = least_rtt_seconds == 0;
    now_seconds = other.now_seconds;
    delivered_bytes += other.delivered_bytes;
    retransmitted_bytes += other.retransmitted_bytes;
    least_rtt_seconds = std::max(least_rtt_seconds, other.least_rtt_seconds);
    least_stretch = is_first ? other.least_stretch : std::min(least_stretch, other.least_stretch);
    most_stretch = std::max(most_stretch, other.most_stretch);
    return *this;
  }

  static constexpr double kStretched = 1.25;
};

}  // namespace farstep
