#include "wan/transport/transport.h"

#include <algorithm>

namespace farstep::wan {

// Bytes add up; times overlap, so the longest is that of all links.
LinkState Transport::uplink() const {
  LinkState sum;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const auto to_peer = link(peer);
    sum.sent_bytes += to_peer.sent_bytes;
    sum.received_bytes += to_peer.received_bytes;
    sum.socket_sent_bytes += to_peer.socket_sent_bytes;
    sum.socket_received_bytes += to_peer.socket_received_bytes;
    sum.retransmitted_bytes += to_peer.retransmitted_bytes;
    sum.sending_seconds = std::max(sum.sending_seconds, to_peer.sending_seconds);
    sum.rtt_seconds = std::max(sum.rtt_seconds, to_peer.rtt_seconds);
    sum.least_rtt_seconds = std::max(sum.least_rtt_seconds, to_peer.least_rtt_seconds);
  }
  return sum;
}

}  // namespace farstep::wan
