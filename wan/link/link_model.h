// One direction of one link, as arithmetic: packets leave one after the other at the link's rate,
// then travel for its delay; the queue before it is drop-tail.
//
// It keeps no time and moves no bytes: its caller says when what enters, and does with the answer
// what it wants. The same calls with the same seed give the same answers. Packets never overtake
// each other. Not thread-safe.
#pragma once

#include <cstdint>

#include "trainer/config/fields.h"
#include "wan/link/link_shape.h"

namespace farstep {

// What becomes of a packet.
enum class Fate {
  kArrives,
  kCut,        // the link is cut
  kQueueFull,  // it would have had to wait longer than the queue allows
  kLost,       // it left, and took its time at the rate, but does not arrive
};

struct Transit {
  Fate fate = Fate::kArrives;
  double leave_seconds = 0;   // its last bit is sent; if it arrives or is lost
  double arrive_seconds = 0;  // its last bit is there; if it arrives, or would if it is lost
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

// What has entered a link, by its fate.
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

class LinkModel {
 public:
  LinkModel(const LinkShape& shape, uint64_t seed) : shape_(shape), seed_(seed) {}

  // A packet of `bytes` comes to the link at `now_seconds`, which never goes back. The n-th packet
  // ever is lost or not by seed and n alone, so a change of the rate does not change who is lost.
  Transit enter(double now_seconds, int64_t bytes);

  // Holds for packets that enter from now on; those that have entered arrive as was said.
  void set_shape(const LinkShape& shape) { shape_ = shape; }
  const LinkShape& shape() const { return shape_; }

  const PacketCounters& counters() const { return counters_; }

 private:
  LinkShape shape_;
  const uint64_t seed_;
  uint64_t entered_ = 0;
  double free_seconds_ = 0;          // when all that has entered will have left
  double last_arrival_seconds_ = 0;  // none arrives earlier, even if the delay was shortened
  PacketCounters counters_;
};

}  // namespace farstep
