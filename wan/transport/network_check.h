// Proves before training that every site can reach every other at the address it advertises.
#pragma once

#include <vector>

#include "wan/transport/mesh.h"
#include "wan/transport/store.h"

namespace farstep {

// Every site listens where its data path will, publishes that and a nonce through `store`, and
// connects to all others; the nonce tells a peer from another machine that answers. All sites run
// it at the same time and share their verdicts, so that they pass or fail together. Strangers that
// connect are ignored. Returns the way to each peer by rank (empty for this site). Throws
// ConfigError listing all failed links and what to change, PeerError if a site does not take part.
std::vector<PeerLink> check_network(const MeshOptions& mesh, Store& store);

}  // namespace farstep
