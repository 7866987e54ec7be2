// Proves before training that every site has a secure link to every other: what check_network() is
// for plain connections.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wan/transport/mesh.h"
#include "wan/transport/store.h"
#include "wan/tunnel/gateway.h"

namespace farstep {

// Publishes where this site can be reached through `store` (nullopt: nowhere, it connects to the
// others), and connects to all peers. All sites call it at the same time and share their verdicts.
// Returns one entry for each peer by rank, and an empty one for this site. Throws a ConfigError
// that lists all failed links and the remedy, and PeerError if a site does not take part.
std::vector<PeerLink> check_tunnels(const MeshOptions& mesh,
                                    const std::optional<SocketAddress>& own, Gateway& gateway,
                                    Store& store);

}  // namespace farstep
