#include "wan/link/uplink.h"

#include <algorithm>

#include "trainer/base/mix.h"

namespace farstep::wan {

Uplink::Uplink(double bits_per_second, std::size_t num_links, const LinkShape& shape, uint64_t seed)
    : bits_per_second_(bits_per_second),
      round_seconds_(static_cast<double>(num_links) * seconds(kPieceBytes)) {
  for (std::size_t i = 0; i < num_links; ++i) {
    // A key for each link, mixed twice: neighbouring seeds and links get unrelated losses.
    links_.push_back({.model = LinkModel(shape, mix(mix(seed) + i))});
  }
}

void Uplink::set_shape(std::size_t link, const LinkShape& shape, double now_seconds) {
  links_[link].model.set_shape(shape, now_seconds);
  links_[link].begun_seconds = std::max(links_[link].begun_seconds, now_seconds);
}

double Uplink::seconds(std::size_t bytes) const {
  return 8.0 * static_cast<double>(bytes) / bits_per_second_;
}

// A whole message at once would let one peer wait for the bytes of another.
Uplink::Turn Uplink::next(std::span<const double> ready_seconds) const {
  Turn next;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const auto& link = links_[i];
    if (ready_seconds[i] == kNever || link.model.shape().is_cut) continue;
    // At most one piece waits at the link, for no longer than all others may need for theirs.
    const double own_start =
        std::max(link.begun_seconds, link.model.start_seconds(0) - round_seconds_);
    const double start = std::max({free_seconds_, own_start, ready_seconds[i]});
    // Of links that are ready at once, the one whose turn is longest ago is next.
    const bool is_next = start < next.start_seconds ||
                         (start == next.start_seconds && link.turn < links_[next.link].turn);
    if (is_next) next = {.link = i, .start_seconds = start};
  }
  return next;
}

Transit Uplink::send(const Turn& turn, std::size_t bytes) {
  auto& link = links_[turn.link];
  // The sender detects a loss, and sends again, a round trip later.
  const double pause_seconds = loses_any(link, bytes) ? 2 * link.model.shape().delay_seconds : 0;
  free_seconds_ = turn.start_seconds + seconds(bytes);
  link.turn = ++turns_;
  link.begun_seconds = link.model.start_seconds(turn.start_seconds);
  return link.model.send(link.begun_seconds, static_cast<int64_t>(bytes), bits_per_second_,
                         pause_seconds);
}

bool Uplink::loses_any(Link& link, std::size_t bytes) {
  const uint64_t lost_before = link.lost_packets;
  for (std::size_t packets = (bytes + kPacketBytes - 1) / kPacketBytes; packets > 0; --packets) {
    if (link.model.loses_packet()) ++link.lost_packets;
  }
  return link.lost_packets > lost_before;
}

}  // namespace farstep::wan
