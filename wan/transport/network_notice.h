// What a site publishes for its peers before the address check. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace farstep::wan {

struct NetworkNotice {
  std::string address, nonce;
  std::vector<int> ports;     // by the rank of the peer for whom the site listens; 0 for its own
  std::string failure;        // why the site cannot take part; empty if it can
  bool is_temporary = false;  // another try of it may succeed
};

// Returns the notice as text for read_network_notice().
std::string text_of(const NetworkNotice& notice);

// Reads a notice in a mesh of `num_sites`. Throws DataError if it is malformed, or lacks a port for
// one of the sites.
NetworkNotice read_network_notice(const std::string& text, int num_sites);

}  // namespace farstep::wan
