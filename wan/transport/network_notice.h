// What a site publishes for its peers before they check their ways to each other: where it listens,
// and which connections of an earlier mesh it would keep. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace farstep::wan {

// Which connections of an earlier mesh a site would keep, by the rank of the peer: the generation
// in which the connection was made; 0: none. An empty list offers nothing.
using Offers = std::vector<int64_t>;

// Returns whether two sites keep their connection. `offers` are those of all sites, by rank.
bool is_kept(const std::vector<Offers>& offers, int a, int b);
// Returns whether all pairs of sites keep theirs.
bool are_all_kept(const std::vector<Offers>& offers);

// Returns the offers as text for read_offers().
std::string text_of(const Offers& offers);
// Reads the offers of a site in a mesh of `num_sites`. Throws DataError if they are malformed.
Offers read_offers(const std::string& text, int num_sites);

struct NetworkNotice {
  std::string address, nonce;
  std::vector<int> ports;     // by the rank of the peer for whom the site listens; 0 for its own
  std::string failure;        // why the site cannot take part; empty if it can
  bool is_temporary = false;  // another try of it may succeed
  Offers kept = {};           // connections of an earlier mesh
};

// Returns the notice as text for read_network_notice().
std::string text_of(const NetworkNotice& notice);

// Reads a notice in a mesh of `num_sites`. Throws DataError if it is malformed, or lacks a port for
// one of the sites.
NetworkNotice read_network_notice(const std::string& text, int num_sites);

}  // namespace farstep::wan
