// A site's connections to the other members of one view, and the exchange over them.
//
// Each view has links of its own, but connections of members that stay may outlive it. The loss of
// a peer aborts the links. abort() is thread-safe. The figures may be read by another thread than
// the one that uses the exchange.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "outer_optimizer/exchange/exchange.h"
#include "outer_optimizer/exchange_kind.h"
#include "trainer/base/clock.h"
#include "trainer/base/view.h"
#include "trainer/peers/connected_exchange.h"
#include "trainer/peers/peers.h"
#include "trainer/settings/site_config.h"
#include "wan/membership/member.h"
#include "wan/transport/link_faults.h"
#include "wan/transport/link_meter.h"
#include "wan/transport/mesh.h"

namespace farstep {

class SecurePort;

namespace wan {
class KeptConnections;
}

// The settings of the links of a view.
struct LinkOptions {
  wan::LinkStage stage = wan::LinkStage::kStart;
  NetworkConfig network;              // of this site
  int lanes = 1;                      // connections between two sites
  SecurePort* secure_port = nullptr;  // null: plain TCP
  // Where connections with members that stay wait for the next view; null: they end with this one.
  wan::KeptConnections* kept = nullptr;
  double connect_seconds = 10;
  double stall_seconds = 60;  // a transfer without progress for so long fails
  uint64_t seed = 0;          // of emulated losses
};

class Links {
 public:
  // Checks that all members can reach each other, then connects to them. The links are emulated if
  // the site's config says so. All members must call it at the same time. `member` and `clock` must
  // outlive this. Throws PeerError, and as require_links() says a ConfigError.
  Links(const View& view, const LinkOptions& options, wan::Member& member, Clock& clock);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  // Makes the exchange of this kind: over the links, or over connections of its own. All members
  // must call it at the same time, once. Throws PeerError.
  void make_exchange(outer_optimizer::ExchangeKind kind);
  // Valid after make_exchange().
  outer_optimizer::Exchange& exchange() { return exchange_->exchange(); }

  // The transport of the links, for other messages than the exchange's.
  wan::Transport& transport() { return *transport_; }

  // As in Peers. Of connections besides the links the kernel's byte counts are taken as payload.
  LinkUse uplink() const;
  std::vector<LinkUse> links() const;
  void measure() { meters_->look(); }

  // Makes every transfer, present or future, fail with PeerError(site, reason). Thread-safe.
  void abort(const std::string& site, const std::string& reason);

 private:
  void abort_when_a_peer_is_lost();

  wan::Member& member_;
  const double stall_seconds_;
  const wan::MeshOptions mesh_;
  std::unique_ptr<wan::Transport> transport_;
  std::unique_ptr<wan::LinkMeters> meters_;
  std::unique_ptr<ConnectedExchange> exchange_;
};

}  // namespace farstep
