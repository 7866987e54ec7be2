// Who takes part in the data path, and where this site listens for its peers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace farstep::wan {

class Relay;

struct MeshOptions {
  int rank = 0;                    // of this site
  std::vector<std::string> sites;  // names by rank
  std::string address;             // of this machine, as resolve_address() gives it
  int port = 0;                    // the first of port_for(); 0: any free ports
  int lanes = 1;                   // connections with each peer, the same number at every site
  // The kernel's congestion control, where it has that one; empty: CUBIC, and BBR with a peer on
  // the way to whom packets get lost without a queue.
  std::string congestion_control = {};
  // What all connections together may send; nothing sets no limit.
  std::optional<double> uplink_bits_per_second = {};
  uint64_t generation = 0;      // keeps the keys of one membership apart from another's
  double connect_seconds = 10;  // how long one connection may take to open and be checked
  // What brings connections to the peers; then `address` is loopback_ip() of the own rank, and
  // `port` is 0. Null: they go over the network as they are.
  Relay* relay = nullptr;
  // Is told about every second of a peer to whom the connections carry nothing. It must not wait.
  std::function<void(const std::string& site)> on_standing = {};

  int size() const { return static_cast<int>(sites.size()); }
  // Where this site listens for a peer's connection number `lane`.
  int port_for(int peer, int lane = 0) const { return port == 0 ? 0 : port + peer * lanes + lane; }
};

// The way to one peer, as check_network() found it.
struct PeerLink {
  std::string source_address;  // where the peer's connections come from
  double rtt_seconds = 0;      // least round trip that the kernel saw
  bool is_kept = false;        // both keep a connection, and nothing else was found out
};

}  // namespace farstep::wan
