// One TCP connection has at most its window under way, so a round trip limits its rate. Several
// connections together keep a long, fast link busy.
#include "wan/link/lanes.h"

#include <algorithm>
#include <cmath>

namespace farstep::wan {

namespace {

// The bits that a connection carries per round trip: about a megabyte with the system's usual
// buffers.
constexpr double kWindowBits = 8e6;
// About six connections of a site in all: as many more would share its line in parts too small to
// fill it.
constexpr double kOfSite = 6;
// Two with a peer are enough for 400 Mbit/s over 80 ms; more of them only where a link needs more.
constexpr double kUsual = 2;
// Sixteen carry 128 Mbit per round trip: a gigabit per second over 128 ms. Every connection has a
// thread and buffers of its own.
constexpr double kMost = 16;

}  // namespace

int64_t lanes_for(int64_t num_sites, double uplink_bits_per_second, double rtt_seconds) {
  const auto peers = static_cast<double>(std::max<int64_t>(1, num_sites - 1));
  const double usual = std::clamp(std::floor(kOfSite / peers), 1.0, kUsual);
  // The bits that must be under way to keep the uplink busy; each peer has its part of them.
  // Without a round trip this is 0, even if the uplink has no limit.
  const double bits_under_way = rtt_seconds > 0 ? uplink_bits_per_second * rtt_seconds : 0;
  const double needed = std::ceil(bits_under_way / kWindowBits / peers);
  return static_cast<int64_t>(std::clamp(needed, usual, kMost));
}

}  // namespace farstep::wan
