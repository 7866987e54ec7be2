// Proves before training that every site can reach every other at its advertised address.
#pragma once

#include <vector>

#include "wan/transport/mesh.h"
#include "wan/transport/store.h"

namespace farstep {

// Listens on the ports of the data path, publishes address, ports and a nonce through `store`, and
// connects to all peers. The nonce distinguishes a peer from another machine that answers. All
// sites call it at the same time and share their verdicts, so that all pass or all fail. Ignores
// strangers that connect. Returns one entry for each peer by rank, and an empty one for this site.
// Throws a ConfigError that lists all failed links and the remedy. Throws PeerError if a site does
// not take part, or cannot listen yet (throw_cannot_listen()).
std::vector<PeerLink> check_network(const MeshOptions& mesh, Store& store);

}  // namespace farstep
