// Computes how long whole messages take over links, in closed form.
//
// These are the times of link_model.h and uplink.h in the limit of infinitely small pieces, for
// links without loss. The time of one message is exact. Where messages share an uplink, the time at
// which one has left can differ. The error is at most the uplink's time for two pieces of every
// link. The time of all together is exact. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace farstep::wan {

inline constexpr double kUnlimitedRate = std::numeric_limits<double>::infinity();

// Returns the time from the message's first bit leaving to its last byte arriving.
double message_seconds(double bytes, double bits_per_second, double delay_seconds);

// A message and the rate of its link.
struct OutgoingMessage {
  double bytes = 0;
  double bits_per_second = kUnlimitedRate;  // of the link
};

// Returns when each message has left, if all start at 0 and share an uplink of this rate. Each link
// has an equal part of the uplink, or its own rate if that is lower. The other links share the
// rest.
std::vector<double> leave_seconds(double uplink_bits_per_second,
                                  std::span<const OutgoingMessage> messages);

// Returns the time of a reduce-scatter and all-gather of `bytes` among equal sites. Each sends
// every peer that peer's part, then its own part's mean to every peer.
double reduce_gather_seconds(double bytes, int64_t num_sites, double uplink_bits_per_second,
                             double delay_seconds);

}  // namespace farstep::wan
