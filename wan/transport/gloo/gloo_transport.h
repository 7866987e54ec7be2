// The data path between processes: a full mesh of Gloo's TCP connections, one or more to each peer.
//
// A message travels in pieces over the lanes in turn; the first piece takes lane tag.chunk modulo
// their number. Several lanes help for two reasons. One connection carries at most one window each
// round trip. A connection that lost a packet delays only its own pieces. On long ways the lanes
// are paced to the site's uplink, which the mesh's options state or UplinkPacer learns.
//
// Of two sites the one with the lower address (or port) listens. Gloo stops listening once the
// connection exists. docs/internals/data_path.md lists what a stranger on such a port can do.
#pragma once

#include <memory>
#include <vector>

#include "wan/transport/mesh.h"
#include "wan/transport/store.h"
#include "wan/transport/transport.h"

namespace farstep::wan {

class GlooConnections;
class KeptConnections;

class GlooTransport : public Transport {
 public:
  // Connects to every peer. All sites construct their transports at the same time; the keys in
  // `store` contain the mesh's generation. `links` is the result of check_network(): only its
  // source addresses can reach the ports. With empty `links` any address can. A transfer fails when
  // no byte moves for `stall_seconds`. Ignores SIGPIPE in this process, because Gloo's writes can
  // raise it. An earlier transport with the same ports must have been destroyed. Throws
  // ConfigError or PeerError if it cannot listen (throw_cannot_listen()). Throws PeerError naming
  // the site that cannot be connected or has another generation.
  //
  // Takes from `kept` the connections that `links` calls kept, and leaves there those that are
  // clean when it ends: its peers then see no end of this transport. Null: keeps none.
  GlooTransport(const MeshOptions& mesh, const std::vector<PeerLink>& links, double stall_seconds,
                Store& store, KeptConnections* kept = nullptr);
  ~GlooTransport() override;

  int rank() const override;
  int size() const override;
  const std::string& site(int rank) const override;
  std::unique_ptr<Transfer> send(int peer, const Tag& tag,
                                 std::span<const std::byte> bytes) override;
  std::unique_ptr<Transfer> receive(int peer, const Tag& tag, std::span<std::byte> bytes) override;
  void abort(const std::string& site, const std::string& reason) override;
  // rtt_seconds is the kernel's smoothed round trip on the lane where that is least.
  // sending_seconds ends when the peer's kernel has acknowledged everything; it is that of the
  // slowest lane.
  LinkState link(int peer) const override;

 private:
  const std::unique_ptr<KeptConnections> own_kept_;  // null if another one is used
  const std::unique_ptr<GlooConnections> connections_;
  const double stall_seconds_;
};

}  // namespace farstep::wan
