// The data path between processes: Gloo's TCP transport as a full mesh, one connection a lane.
//
// A message travels in pieces over the lanes in turn, its first over lane tag.chunk modulo their
// number: one connection carries at most its window a round trip, and one that lost a packet holds
// up only its own pieces. Over long ways the lanes are paced to the site's uplink, which the mesh's
// options state or which is learned (uplink_pacer.h).
//
// Of two sites the one with the lower address (or port) listens; Gloo stops listening once the
// connection is there. docs/data_path.md says what a stranger on such a port can do.
#pragma once

#include <memory>
#include <vector>

#include "wan/transport/mesh.h"
#include "wan/transport/store.h"
#include "wan/transport/transport.h"

namespace farstep {

class GlooConnections;

class GlooTransport : public Transport {
 public:
  // Connects to every peer; all sites construct theirs at the same time, with keys of the mesh's
  // generation in `store`. `links` is what check_network() returned: only those source addresses
  // can reach the ports; empty lets anybody connect. A transfer whose bytes stop for
  // `stall_seconds` fails. Ignores SIGPIPE in this process, as Gloo would die of it. A transport
  // with the same ports must have been destroyed before. Throws ConfigError if it cannot listen,
  // PeerError naming the site that cannot be connected or is of another generation.
  GlooTransport(const MeshOptions& mesh, const std::vector<PeerLink>& links, double stall_seconds,
                Store& store);
  ~GlooTransport() override;

  int rank() const override;
  int size() const override;
  const std::string& site(int rank) const override;
  std::unique_ptr<Transfer> send(int peer, const Tag& tag,
                                 std::span<const std::byte> bytes) override;
  std::unique_ptr<Transfer> receive(int peer, const Tag& tag, std::span<std::byte> bytes) override;
  void abort(const std::string& site, const std::string& reason) override;
  // The round trip is the kernel's, smoothed, on the quickest lane; sending ends when the peer's
  // kernel has acknowledged all, and is that of the lane on which it took longest.
  LinkState link(int peer) const override;

 private:
  const std::unique_ptr<GlooConnections> connections_;
  const double stall_seconds_;
};

}  // namespace farstep
