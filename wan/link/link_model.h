// One direction of a link, as arithmetic: Farstep's only model of a link.
//
// Packets, pieces or messages leave in order at the link's rate, then travel for its delay. They
// never overtake each other. The model has no clock and moves no bytes: its caller passes the
// times. The same calls with the same key return the same results. Not thread-safe.
//
// It has four callers, which differ for these reasons:
// - The lab sends IP packets (wan/lab/packet_link.h). It drops packets that are lost or would wait
//   too long in the queue, as the internet does: TCP above it sends them again.
// - The emulating transport sends pieces of messages over an uplink (uplink.h). It drops nothing,
//   since no layer above it sends again. A lost piece arrives a round trip late. Waiting pieces
//   stay in their sender's memory, so no queue is ever full.
// - The simulator and the planner compute the times of whole messages (link_time.h), the limit of
//   small pieces. They have no loss, as no site measures any, and no queue, as TCP fills none for
//   long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "wan/link/link_shape.h"

namespace farstep::wan {

struct Transit {
  double leave_seconds = 0;   // when the last bit is sent
  double arrive_seconds = 0;  // when the last bit arrives
};

class LinkModel {
 public:
  // `loss_key` decides which packets are lost.
  LinkModel(const LinkShape& shape, uint64_t loss_key) : shape_(shape), loss_key_(loss_key) {}

  // Returns when data that is ready at `ready_seconds` can begin to leave.
  double start_seconds(double ready_seconds) const {
    return std::max(ready_seconds, free_seconds_);
  }

  // Sends `bytes`, which begin to leave at `start_seconds`; start_seconds() must allow that. They
  // leave at the lower of the link's rate and `most_bits_per_second`. Then the link pauses for
  // `pause_seconds`, which count as part of their leaving.
  Transit send(double start_seconds, int64_t bytes,
               double most_bits_per_second = std::numeric_limits<double>::infinity(),
               double pause_seconds = 0);

  // Returns whether the next packet is lost. This depends on key and packet number alone, so a
  // change of the rate does not change which packets are lost.
  bool loses_packet();

  // Sets the shape for data that leaves from now on, no earlier than `from_seconds`.
  void set_shape(const LinkShape& shape, double from_seconds = 0);
  const LinkShape& shape() const { return shape_; }

 private:
  LinkShape shape_;
  uint64_t loss_key_;
  uint64_t packets_ = 0;             // calls of loses_packet()
  double free_seconds_ = 0;          // when all sent data has left
  double last_arrival_seconds_ = 0;  // nothing arrives earlier, even if the delay was shortened
};

}  // namespace farstep::wan
