// The exchange of a view, with the connections that it has besides the links.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "outer_optimizer/exchange/exchange.h"
#include "outer_optimizer/exchange_kind.h"
#include "wan/sockets/process_sockets.h"
#include "wan/transport/mesh.h"
#include "wan/transport/store.h"
#include "wan/transport/transport.h"

namespace farstep {

// Returns whether an exchange of this kind uses the links of the view, and no connections of its
// own. With keys each kind does, as only the links are encrypted: a ring is then one over the
// links.
bool uses_links(outer_optimizer::ExchangeKind kind, bool has_keys);

class ConnectedExchange {
 public:
  virtual ~ConnectedExchange() = default;
  virtual outer_optimizer::Exchange& exchange() = 0;
  // Returns the kernel's byte counts of the connections besides the links; nothing if there are
  // none.
  virtual std::optional<wan::SocketBytes> own_bytes() = 0;
  // Makes every transfer over these connections, present or future, fail with PeerError(site,
  // reason). Thread-safe.
  virtual void abort(const std::string& site, const std::string& reason) = 0;
};

// The members' connections, from which an exchange is made. Both references must outlive it.
struct ExchangeGround {
  wan::Transport& links;
  const wan::MeshOptions& mesh;
  double stall_seconds = 60;
  wan::Store& store;
};

// Makes the exchange of this kind, as uses_links() says: the mesh has a relay if the run has keys.
// All members must call it at the same time. Throws
// PeerError.
std::unique_ptr<ConnectedExchange> make_exchange(outer_optimizer::ExchangeKind kind,
                                                 const ExchangeGround& ground);

}  // namespace farstep
