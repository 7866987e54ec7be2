// Measures round trip and bandwidth of the links to the peers over the data path itself.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "heterogeneity/knowledge/site_profile.h"
#include "trainer/base/clock.h"
#include "wan/transport/transport.h"

namespace farstep::heterogeneity {

struct LinkProbe {
  double seconds = 1;  // about how long the transfer lasts that counts
  // In one direction, at least 1. The last transfer has half of it: a second at 1 Gbit/s.
  int64_t most_bytes = 256 * (1 << 20);

  // In one direction. A long line is at its rate after twenty to forty round trips of transfers,
  // which are so long at 250 ms.
  double most_seconds() const { return 10 * seconds; }
  // The same while the rate may still grow. TCP's CUBIC may take its slow start for over far too
  // early (HyStart), by a delay that it did not cause. From there 9 s lead to 50 Mbit/s over 80 ms.
  double most_growing_seconds() const { return 30 * seconds; }
};

// Measures the links from this site to all peers, in order of rank. The round trip is the median of
// several pings of 8 bytes. The bandwidth comes from a transfer, minus the time of one of 8 bytes.
// Its size doubles until it lasts about `probe.seconds` and LinkMeter's round trips, its rate
// neither grows nor falls any more, and a long line shows that it is full; or until a limit of the
// probe: then the best rate is a lower bound. All sites call it at the same time with the same
// probe. Pairs and directions take turns, so that no two transfers share a link; a message may wait
// for all earlier pairs. Returns after the site's last pair; the transport must stay until all
// sites have returned. Returns nullopt if a stop was requested; the transport cannot be used then.
// Throws PeerError.
std::optional<std::vector<LinkProfile>> measure_links(wan::Transport& transport,
                                                      const LinkProbe& probe, const Clock& clock,
                                                      const std::stop_token& stop);

// Returns how long a message of measure_links() among `num_sites` may wait for its turn.
double longest_turn_seconds(int num_sites, const LinkProbe& probe);

}  // namespace farstep::heterogeneity
