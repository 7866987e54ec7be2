// The links of one site to its peers, which share its uplink.
//
// Messages are cut into pieces. The uplink sends one piece at a time, and the links take turns,
// piece by piece. A link that is slower than the uplink takes its turn one round of turns before it
// is free. So it is never idle, and delays no other link. A cut link sends only the piece that has
// taken its turn. A piece that loses packets is sent again: it arrives one round trip (twice the
// delay) later, and its link pauses for that time. Links are numbered from 0. Arithmetic only, as
// link_model.h. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "wan/link/link_model.h"

namespace farstep::wan {

class Uplink {
 public:
  // The largest piece. It is small relative to a sync's chunks, so that turns are fair. It is large
  // enough that a fast link has some thousand turns a second and not a million.
  static constexpr std::size_t kPieceBytes = 64 << 10;
  static constexpr std::size_t kPacketBytes = 1460;  // what TCP puts into a packet of 1500
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // All links have `shape`; `seed` determines the losses.
  Uplink(double bits_per_second, std::size_t num_links, const LinkShape& shape, uint64_t seed);

  const LinkShape& shape(std::size_t link) const { return links_[link].model.shape(); }
  // Sets the shape for pieces that take their turn from `now_seconds` on.
  void set_shape(std::size_t link, const LinkShape& shape, double now_seconds);
  // Returns when the link can send a piece that is ready at `ready_seconds`, if the uplink is free.
  double start_seconds(std::size_t link, double ready_seconds) const {
    return links_[link].model.start_seconds(ready_seconds);
  }

  struct Turn {
    std::size_t link = 0;
    double start_seconds = kNever;  // kNever: no link has a piece that it can send
  };
  // Returns the link whose piece leaves next, and when, if a link's next piece is ready at
  // `ready_seconds[link]` (kNever: it has none). Among links that could begin at once, the one
  // served longest ago is next.
  Turn next(std::span<const double> ready_seconds) const;
  // Sends a piece of `bytes` in the turn that next() returned.
  Transit send(const Turn& turn, std::size_t bytes);

  uint64_t lost_packets(std::size_t link) const { return links_[link].lost_packets; }

 private:
  struct Link {
    LinkModel model;
    double begun_seconds = 0;  // when its newest piece begins to leave over it
    uint64_t turn = 0;         // when it was served last
    uint64_t lost_packets = 0;
  };

  // Returns the uplink's time for so many bytes.
  double seconds(std::size_t bytes) const;
  // Returns whether a piece loses any of its packets.
  bool loses_any(Link& link, std::size_t bytes);

  const double bits_per_second_;
  const double round_seconds_;  // a turn of every link
  std::vector<Link> links_;
  double free_seconds_ = 0;  // when the uplink will have sent all pieces
  uint64_t turns_ = 0;
};

}  // namespace farstep::wan
