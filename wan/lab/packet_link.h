// One direction of a site's access link: the link model for packets, with a drop-tail queue.
//
// It drops packets as a router of the internet does: those of a cut link, those that would wait
// longer than the queue allows, and those that are lost on the way. It has no clock and moves no
// bytes: its caller passes the times. Not thread-safe.
#pragma once

#include <cstdint>

#include "trainer/config/fields.h"
#include "wan/link/link_model.h"

namespace farstep::wan {

// The outcome for a packet.
enum class Fate {
  kArrives,
  kCut,        // the link is cut
  kQueueFull,  // it would wait longer than the queue allows
  kLost,       // it left, and took its time at the rate, but does not arrive
};

// The times of a packet that arrives, and for a lost one the times as if it arrived.
struct PacketTransit : Transit {
  Fate fate = Fate::kArrives;
};

struct PacketCount {
  int64_t packets = 0;
  int64_t bytes = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("packets", packets, "packets");
    visit("bytes", bytes, "their bytes");
  }

  void add(int64_t packet_bytes) {
    ++packets;
    bytes += packet_bytes;
  }
  bool operator==(const PacketCount&) const = default;
};

// The packets that have entered a link, by fate.
struct PacketCounters {
  PacketCount passed, cut, queue_full, lost;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("passed", passed, "arrived, or on their way");
    visit("cut", cut, "dropped because the link was cut");
    visit("queue_full", queue_full, "dropped because the queue was full");
    visit("lost", lost, "lost on the way");
  }

  bool operator==(const PacketCounters&) const = default;
};

class PacketLink {
 public:
  PacketLink(const LinkShape& shape, uint64_t seed);

  // Adds a packet of `bytes` at `now_seconds`, which must not decrease. Whether the n-th packet is
  // lost depends on seed and n alone.
  PacketTransit enter(double now_seconds, int64_t bytes);

  // Sets the shape for packets that enter from now on. Packets that have entered arrive as
  // computed.
  void set_shape(const LinkShape& shape) { model_.set_shape(shape); }
  const LinkShape& shape() const { return model_.shape(); }

  const PacketCounters& counters() const { return counters_; }

 private:
  LinkModel model_;
  PacketCounters counters_;
};

}  // namespace farstep::wan
