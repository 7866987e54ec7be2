// The connections of a GlooTransport: made, watched, and ended together. Private to that unit.
//
// Thread-safe once open() has returned. Gloo's exceptions end all waits and leave as PeerErrors.
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "wan/transport/loss_watch.h"
#include "wan/transport/mesh.h"
#include "wan/transport/process_sockets.h"
#include "wan/transport/store.h"
#include "wan/transport/transport.h"
#include "wan/transport/uplink_pacer.h"

namespace farstep {

// At least one millisecond, as 0 means "for ever" in places of Gloo.
std::chrono::milliseconds to_milliseconds(double seconds);

// One TCP connection with a peer. Gloo takes the listening port from the device, so each has its
// own; that also gives each its own event thread.
struct GlooLane {
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::transport::Context> context;
  std::vector<char> own_address;
  std::optional<SocketCounter> socket;  // guarded by the mutex of GlooConnections
};

// The way to one peer.
struct GlooConnection {
  std::vector<GlooLane> lanes;
  std::atomic<uint64_t> sent_bytes{0}, received_bytes{0};
  // Guarded by the pacing mutex of GlooConnections.
  std::optional<LossWatch> losses = LossWatch();  // until there are some

  // A standing receive on the first lane: it ends the moment that breaks, whoever else waits for
  // whatever, or with the rank that the peer lost, so that all sites name the same one.
  int64_t lost_by_peer = -1;
  int64_t lost_by_us = -1;
  std::unique_ptr<gloo::transport::UnboundBuffer> watch, farewell;
  std::thread watcher;
};

class GlooConnections {
 public:
  explicit GlooConnections(const MeshOptions& mesh) : mesh_(mesh), links_(mesh.sites.size()) {}
  ~GlooConnections();

  // Connects to all peers and starts to watch them; see GlooTransport's constructor.
  void open(const std::vector<PeerLink>& links, Store& store);

  const MeshOptions& mesh() const { return mesh_; }
  std::vector<int> peers() const;
  // Throws InternalError unless `peer` is the rank of a peer.
  GlooConnection& to(int peer);

  // Runs `operation` of Gloo with a peer; what it throws counts as the end of that connection.
  template <typename Operation>
  void run(int peer, Operation operation) {
    try {
      operation();
    } catch (const std::exception& error) {
      fail(peer, error.what());
      throw_if_dead();
    }
  }

  // The connection to `peer` failed, perhaps because that lost somebody else.
  void fail(int peer, const std::string& reason);
  // Ends all waits of this site, and tells the peers whom it lost.
  void abort(const std::string& site, const std::string& reason);
  // Ends all waits of this site by closing the connection to `peer` in the middle of a message.
  void give_up(int peer);
  // Throws the PeerError that ended all waits, if any.
  void throw_if_dead() const;

  // Buffers whose waits a failure wakes.
  void enroll(gloo::transport::UnboundBuffer* buffer);
  void dismiss(gloo::transport::UnboundBuffer* buffer);

  // A message to a peer starts to be sent, or is gone. What these times teach of the line paces the
  // lanes, unless the mesh states the uplink, and chooses how the kernel controls them, unless the
  // mesh states that.
  void begin_send();
  void end_send(int peer, uint64_t bytes);

  // What was counted of a peer's messages, and what the kernel knows of its connections.
  LinkState link(int peer);

 private:
  void listen_for(int peer, const std::string& source_ip, Store& store);
  void listen(GlooLane& lane, int peer, int port, const std::string& source_ip);
  void connect_to(int peer, Store& store);
  void connect(GlooLane& lane, int peer, const std::vector<char>& peer_address);
  void watch(int peer);
  void look(double now_seconds);
  void mind_losses(GlooConnection& lossy);
  void end(const std::string& site, const std::string& reason, bool tell_peers);
  void say_farewell(const std::string& lost_site);
  std::string key(int from, int to) const;

  const MeshOptions mesh_;
  std::vector<GlooConnection> links_;  // by rank; the own one stays empty
  std::mutex ending_mutex_;            // one failure at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::optional<PeerError> failure_;                    // guarded by mutex_
  std::set<gloo::transport::UnboundBuffer*> enrolled_;  // guarded by mutex_
  const RealClock clock_;
  std::mutex pacing_mutex_;  // taken before mutex_
  UplinkPacer pacer_;        // guarded by pacing_mutex_, as is what follows
  double looked_seconds_ = 0;
};

}  // namespace farstep
