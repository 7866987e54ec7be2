// The connection of two sites, which may outlive a mesh: its lanes, each a connection of Gloo's.
// Private to the unit.
//
// One mesh at a time uses it. It is clean while no message is under way on it, and none was given
// up: then another mesh can take it.
#pragma once

#include <gloo/transport/context.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wan/sockets/process_sockets.h"
#include "wan/transport/gloo/peer_watch.h"
#include "wan/transport/lines/loss_watch.h"
#include "wan/transport/lines/stall_watch.h"
#include "wan/transport/relay.h"

namespace farstep::wan {

// One connection of Gloo's.
struct GlooLane {
  std::shared_ptr<gloo::transport::Context> context;
  std::vector<char> own_address;
  // Of a relay. The way stays: Gloo's connection exists before the relay has taken it.
  std::shared_ptr<const void> offer;
  std::optional<Way> way;
  std::shared_ptr<SocketCounter> socket;  // null before there is one
  std::shared_ptr<Line> line;             // of the present mesh; null before
  StallWatch stall;                       // the same; used by the thread of that mesh only
};

class GlooConnection {
 public:
  // Of a mesh in which this site listens at `address`. The generation stands for the connection: a
  // mesh has one with each peer.
  GlooConnection(std::string address, uint64_t generation)
      : address_(std::move(address)), generation_(generation) {}
  ~GlooConnection();
  GlooConnection(const GlooConnection&) = delete;
  GlooConnection& operator=(const GlooConnection&) = delete;

  const std::string& address() const { return address_; }
  uint64_t generation() const { return generation_; }

  // Begins and ends its part in the mesh of a generation; the first one throws what Gloo throws.
  // Watches of earlier meshes stay, see PeerWatch.
  void begin(uint64_t generation);
  void end();
  PeerWatch* watch() { return watch_.get(); }  // null outside of a mesh

  // No later mesh may take the connection. Thread-safe.
  void spoil() { is_spoiled_ = true; }
  // Whether a later mesh may take it: nothing has spoiled it, and all lanes are sound.
  bool is_clean() const;
  // Closes all lanes. Waits for Gloo's thread, so that no buffer is used afterwards.
  void close();

  std::vector<GlooLane> lanes;
  std::atomic<uint64_t> sent_bytes{0}, received_bytes{0};  // in this mesh
  // Detects losses; empty after it has found some. Guarded as the user's.
  std::optional<LossWatch> losses = LossWatch();

 private:
  const std::string address_;
  const uint64_t generation_;
  std::atomic<bool> is_spoiled_{false};
  std::unique_ptr<PeerWatch> watch_;
  std::vector<std::unique_ptr<PeerWatch>> past_watches_;
};

using GlooConnectionPtr = std::unique_ptr<GlooConnection>;

// Closes and ends several connections at once: each close waits for a turn of Gloo's thread.
void close_all(std::vector<GlooConnectionPtr> connections);

}  // namespace farstep::wan
