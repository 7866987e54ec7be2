// Who takes part in the data path, and where this site listens for its peers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace farstep {

struct MeshOptions {
  int rank = 0;                    // of this site
  std::vector<std::string> sites;  // names by rank
  std::string address;             // of this machine, as resolve_address() gives it
  int port = 0;                    // this site listens for peer k at port + k; 0: any free ports
  uint64_t generation = 0;         // keeps the keys of one membership apart from another's
  double connect_seconds = 10;     // how long one connection may take to open and be checked

  int size() const { return static_cast<int>(sites.size()); }
  int port_for(int peer) const { return port == 0 ? 0 : port + peer; }
};

// The way to one peer, as check_network() found it.
struct PeerLink {
  std::string source_address;  // where the peer's connections come from
  double rtt_seconds = 0;      // least round trip that the kernel saw
};

}  // namespace farstep
