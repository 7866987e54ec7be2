// The specification of a lab: its sites, and the access link of each to the core of the internet.
//
// A config struct, read from spec.json in the lab's folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/fields.h"
#include "wan/link/link_shape.h"

namespace farstep::wan {

inline constexpr std::string_view kLabSpecFile = "spec.json";
inline constexpr int64_t kMostLabSites = 254;  // a /24 network has no more addresses

struct LabSpec {
  std::vector<LinkShape> sites;
  std::string subnet = "10.77.0.0";
  int64_t mtu_bytes = 1500;
  int64_t seed = 1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sites", sites, "each site's access link; uplink and downlink are alike",
          required(in_range(1, kMostLabSites)));
    visit("subnet", subnet, "/24 network of the sites: site 1 has its first address");
    visit("mtu_bytes", mtu_bytes, "largest IP packet", in_range(576, 65535));
    visit("seed", seed, "seed of which packets get lost", at_least(0));
  }
};

}  // namespace farstep::wan
