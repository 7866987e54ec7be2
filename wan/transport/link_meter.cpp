#include "wan/transport/link_meter.h"

#include <algorithm>

namespace farstep::wan {

// A round trip is a state and no sum: the newest one stands for both.
LinkState since(const LinkState& before, const LinkState& now) {
  return {.sent_bytes = now.sent_bytes - before.sent_bytes,
          .received_bytes = now.received_bytes - before.received_bytes,
          .socket_sent_bytes = now.socket_sent_bytes - before.socket_sent_bytes,
          .socket_received_bytes = now.socket_received_bytes - before.socket_received_bytes,
          .retransmitted_bytes = now.retransmitted_bytes - before.retransmitted_bytes,
          .sending_seconds = now.sending_seconds - before.sending_seconds,
          .rtt_seconds = now.rtt_seconds,
          .least_rtt_seconds = now.least_rtt_seconds};
}

LinkState sum(const LinkState& first, const LinkState& second) {
  return {.sent_bytes = first.sent_bytes + second.sent_bytes,
          .received_bytes = first.received_bytes + second.received_bytes,
          .socket_sent_bytes = first.socket_sent_bytes + second.socket_sent_bytes,
          .socket_received_bytes = first.socket_received_bytes + second.socket_received_bytes,
          .retransmitted_bytes = first.retransmitted_bytes + second.retransmitted_bytes,
          .sending_seconds = first.sending_seconds + second.sending_seconds,
          .rtt_seconds = second.rtt_seconds,
          .least_rtt_seconds = second.least_rtt_seconds};
}

// A send that fills the line replaces the known speed; a shorter one can only raise it. Otherwise a
// change to a smaller codec would look like a slower line, and be undone.
void LinkMeter::observe(const LinkState& now) {
  const auto sent = since(last_, now);
  last_ = now;
  if (sent.sent_bytes == 0 || sent.sending_seconds < kLeastSeconds) return;
  const double reached = 8 * static_cast<double>(sent.sent_bytes) / sent.sending_seconds;
  const bool is_trusted = sent.sending_seconds >= kTrustedRoundTrips * sent.rtt_seconds;
  bits_per_second_ = is_trusted ? reached : std::max(reached, bits_per_second_.value_or(0));
}

LinkMeters::LinkMeters(const Transport& transport)
    : transport_(transport), uplink_(transport.uplink()) {
  for (int peer = 0; peer < transport.size(); ++peer) {
    links_.emplace_back(peer == transport.rank() ? LinkState{} : transport.link(peer));
  }
}

void LinkMeters::look() {
  for (int peer = 0; peer < transport_.size(); ++peer) {
    if (peer != transport_.rank())
      links_[static_cast<std::size_t>(peer)].observe(transport_.link(peer));
  }
  uplink_.observe(transport_.uplink());
}

}  // namespace farstep::wan
