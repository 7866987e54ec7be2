// The exchange of a view, with the connections that it has besides the links.
#pragma once

#include <memory>
#include <string>

#include "outer_optimizer/exchange/exchange.h"
#include "outer_optimizer/exchange_kind.h"
#include "wan/sockets/process_sockets.h"
#include "wan/transport/mesh.h"
#include "wan/transport/store.h"
#include "wan/transport/transport.h"

namespace farstep {

class ConnectedExchange {
 public:
  virtual ~ConnectedExchange() = default;
  virtual outer_optimizer::Exchange& exchange() = 0;
  // Returns the kernel's byte counts of the connections besides the links.
  virtual wan::SocketBytes own_bytes() = 0;
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

// Makes the exchange of this kind. All members must call it at the same time. Throws PeerError.
std::unique_ptr<ConnectedExchange> make_exchange(outer_optimizer::ExchangeKind kind,
                                                 const ExchangeGround& ground);

}  // namespace farstep
