// Finds out whether every site can reach every other at its advertised address.
#pragma once

#include "wan/transport/link_faults.h"
#include "wan/transport/mesh.h"
#include "wan/transport/network_notice.h"
#include "wan/transport/store.h"

namespace farstep::wan {

// Listens on the ports of the data path, publishes address, ports and a nonce through `store`, and
// connects to all peers. The nonce distinguishes a peer from another machine that answers. Ignores
// strangers that connect. All sites call it at the same time, and return the same faults: failed
// links, or the sites that cannot listen. require_links() says what follows from them. Throws
// PeerError if a site does not take part.
//
// `offers` are the connections of an earlier mesh that this site would keep. Pairs that keep theirs
// are not tried.
NetworkFindings check_network(const MeshOptions& mesh, Store& store, const Offers& offers = {});

}  // namespace farstep::wan
