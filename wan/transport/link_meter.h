// How fast a site's links are, from what its own messages took.
//
// The sends between two looks are trusted if they filled the line: if something was being sent for
// at least kTrustedRoundTrips round trips, so that what is lost at their beginning and end is a
// small part. Their speed then replaces what was known. Shorter ones (few bytes, or many in many
// small pieces) only show that a link is at least as fast as they were: they can raise what is
// known, never lower it. So a figure that was measured with large messages holds while messages are
// small, until the line gets so slow that even these fill it. Less than kLeastSeconds, a few ticks
// of the kernel's clock, teaches nothing.
//
// Not thread-safe: one owner.
#pragma once

#include <optional>
#include <vector>

#include "wan/transport/transport.h"

namespace farstep {

// What went over a link between two looks at it, with the round trip of the second.
LinkState since(const LinkState& before, const LinkState& now);

class LinkMeter {
 public:
  static constexpr double kTrustedRoundTrips = 8, kLeastSeconds = 0.05;

  explicit LinkMeter(const LinkState& now) : last_(now) {}

  // Learns from what was sent since the last look.
  void look(const LinkState& now);

  // What the link is known to carry; nothing until something was sent that can tell.
  std::optional<double> bits_per_second() const { return bits_per_second_; }

 private:
  LinkState last_;
  std::optional<double> bits_per_second_;
};

// The meters of all links of a transport, which must outlive them, and of the links together.
class LinkMeters {
 public:
  explicit LinkMeters(const Transport& transport);

  // To be called when a sync is over, and nothing is being sent.
  void look();

  const LinkMeter& link(int peer) const { return links_.at(static_cast<std::size_t>(peer)); }
  const LinkMeter& uplink() const { return uplink_; }

 private:
  const Transport& transport_;
  std::vector<LinkMeter> links_;  // by rank; the own one stays as it is
  LinkMeter uplink_;
};

}  // namespace farstep
