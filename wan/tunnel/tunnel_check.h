// Finds out whether every site has a secure link to every other: what check_network() is for plain
// connections.
#pragma once

#include <optional>

#include "wan/sockets/tcp.h"
#include "wan/transport/link_faults.h"
#include "wan/transport/mesh.h"
#include "wan/transport/network_notice.h"
#include "wan/transport/store.h"
#include "wan/tunnel/gateway.h"

namespace farstep::wan {

// Publishes where this site can be reached through `store` (nullopt: nowhere, it connects to the
// others), and connects to all peers, within connect_seconds. All sites call it at the same time,
// and return the same faults; require_links() says what follows from them. Throws PeerError if a
// site does not take part. `offers` as in check_network().
NetworkFindings check_tunnels(const MeshOptions& mesh, const std::optional<SocketAddress>& own,
                              Gateway& gateway, Store& store, const Offers& offers = {});

}  // namespace farstep::wan
