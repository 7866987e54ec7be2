// Computes how many connections two sites have with each other.
#pragma once

#include <cstdint>

namespace farstep::wan {

// Returns the number of connections with each peer, for a site with this uplink and a round trip of
// `rtt_seconds` to its farthest peer. If both are 0 (unknown), it is one or two. At least 1, even
// with one site.
int64_t lanes_for(int64_t num_sites, double uplink_bits_per_second = 0, double rtt_seconds = 0);

}  // namespace farstep::wan
