// Counts the packets that passed the links of a lab or were dropped, as JSON and as a table. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/fields.h"
#include "wan/lab/packet_link.h"

namespace farstep::wan {

struct SiteCounters {
  int64_t site = 0;  // from 1
  std::string address;
  PacketCounters up, down;
  PacketCount malformed, no_such_site;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "number of the site, from 1");
    visit("address", address, "its IP address");
    visit("up", up, "what it sent, on its uplink");
    visit("down", down, "what came for it, on its downlink");
    visit("malformed", malformed, "what it sent that is no IPv4 packet; not on the uplink");
    visit("no_such_site", no_such_site, "what it sent to an address of no site; not on the uplink");
  }
};

struct LabCounters {
  std::vector<SiteCounters> sites;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sites", sites, "the sites, in order");
  }
};

// Returns a table with a heading and one row per link.
std::string counters_table(const LabCounters& counters);

}  // namespace farstep::wan
