// Measures the speed of a site's links from the times of its own messages.
//
// Sends are trusted if they filled the line: if sending took at least kTrustedRoundTrips round
// trips since the last sample. Then the slow start and the last acknowledgement are a small part of
// the time, and the measured speed replaces the known one. Shorter sends (few bytes, or many small
// pieces) only give a lower bound: they can raise the known speed and never lower it. So a speed
// measured with large messages stays while messages are small, until the line is so slow that small
// ones fill it too. Times under kLeastSeconds, a few ticks of the kernel's clock, are ignored.
//
// Not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "wan/transport/transport.h"

namespace farstep::wan {

// Returns the difference of two states of a link, with the round trip of the second.
LinkState since(const LinkState& before, const LinkState& now);
// Returns the sum of two states, one after the other, with the round trip of the second.
LinkState sum(const LinkState& first, const LinkState& second);

class LinkMeter {
 public:
  static constexpr double kTrustedRoundTrips = 8, kLeastSeconds = 0.05;

  explicit LinkMeter(const LinkState& now) : last_(now) {}

  // Learns from the sends since the last call.
  void observe(const LinkState& now);

  // Returns the measured speed; nullopt before the first send that can be measured.
  std::optional<double> bits_per_second() const { return bits_per_second_; }

 private:
  LinkState last_;
  std::optional<double> bits_per_second_;
};

// One meter for each link of a transport and one for all links together. The transport must outlive
// them.
class LinkMeters {
 public:
  explicit LinkMeters(const Transport& transport);

  // Must be called when a sync has ended and no message is under way.
  void look();

  const LinkMeter& link(int peer) const { return links_.at(static_cast<std::size_t>(peer)); }
  const LinkMeter& uplink() const { return uplink_; }

 private:
  const Transport& transport_;
  std::vector<LinkMeter> links_;  // by rank; the entry of this site is not used
  LinkMeter uplink_;
};

}  // namespace farstep::wan
