// Settings of the emulated links of a site (`network.emulate` of its config).
#pragma once

#include <optional>

#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep::wan {

// Delays the messages that a site sends, to emulate a WAN on one machine.
struct EmulatedLink {
  std::optional<double> rate_bits_per_second;
  double delay_seconds = 0;
  double loss = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("rate_bits_per_second", rate_bits_per_second,
          "what the site sends to all peers together; null: no limit", above(0));
    visit("delay_seconds", delay_seconds, "from this site to a peer, one way", at_least(0));
    visit("loss", loss, "share of the packets that come one round trip late", in_range(0, 1));
  }

  // Throws ConfigError, with the member under `path`, if members contradict each other.
  void validate(const JsonPath& path) const;
};

}  // namespace farstep::wan
