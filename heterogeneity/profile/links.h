// Round trip and bandwidth of the ways to the peers, measured over the data path itself.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "heterogeneity/plan/site_profile.h"
#include "trainer/base/clock.h"
#include "wan/transport/transport.h"

namespace farstep {

struct LinkProbe {
  double seconds = 1;                   // about the longest transfer in one direction
  int64_t most_bytes = 64 * (1 << 20);  // transferred in one direction; at least 1
};

// Measures the way from this site to every peer, in order of rank: the round trip is the median of
// some pings of 8 bytes, the bandwidth that of a transfer whose size doubles until the probe's
// limit is near, less what a transfer of 8 bytes takes. All sites call it at the same time with the
// same probe; one pair measures after the other, one direction after the other, so that no two
// transfers share a link, and a message may wait until all pairs before it are done. When a site's
// last pair is done it returns: keep the transport until all sites have. Nothing if stop was
// requested before the end, after which the transport is of no use. Throws PeerError.
std::optional<std::vector<LinkProfile>> measure_links(Transport& transport, const LinkProbe& probe,
                                                      const Clock& clock,
                                                      const std::stop_token& stop);

// For how long a message of measure_links() among `num_sites` may wait for its turn.
double longest_turn_seconds(int num_sites, const LinkProbe& probe);

}  // namespace farstep
