// The connections of a GlooTransport: opens, watches and ends them. Private to that unit.
//
// Thread-safe after open() has returned. An exception of Gloo ends all waits of the site and
// becomes a PeerError.
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
#include "wan/sockets/process_sockets.h"
#include "wan/transport/gloo/loss_watch.h"
#include "wan/transport/gloo/peer_watch.h"
#include "wan/transport/gloo/stall_watch.h"
#include "wan/transport/gloo/uplink_pacer.h"
#include "wan/transport/mesh.h"
#include "wan/transport/relay.h"
#include "wan/transport/store.h"
#include "wan/transport/transport.h"

namespace farstep::wan {

// Returns at least one millisecond, because Gloo reads 0 as "for ever" in some places, and at most
// 1e9 seconds, because Gloo adds it to a clock that counts nanoseconds.
std::chrono::milliseconds to_milliseconds(double seconds);

// One connection with a peer. Gloo binds the listening port to the device. So each lane has a
// device, and an event thread, of its own.
struct GlooLane {
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::transport::Context> context;
  std::vector<char> own_address;
  // Of a relay. The way stays: Gloo's connection exists before the relay has taken it.
  std::shared_ptr<const void> offer;
  std::optional<Way> way;
  std::shared_ptr<Line> line;  // guarded by the mutex of GlooConnections; null before
  StallWatch stall;            // used by the thread of GlooConnections only
};

// All connections with one peer.
struct GlooConnection {
  std::vector<GlooLane> lanes;
  std::atomic<uint64_t> sent_bytes{0}, received_bytes{0};
  // Detects losses; empty after it has found some. Guarded by the pacing mutex of GlooConnections.
  std::optional<LossWatch> losses = LossWatch();

  std::unique_ptr<PeerWatch> watch;  // of the first lane; null before
};

class GlooConnections {
 public:
  explicit GlooConnections(const MeshOptions& mesh) : mesh_(mesh), links_(mesh.sites.size()) {}
  ~GlooConnections();

  // Connects to all peers and starts to watch them. GlooTransport's constructor has the contract.
  void open(const std::vector<PeerLink>& links, Store& store);

  const MeshOptions& mesh() const { return mesh_; }
  std::vector<int> peers() const;
  // Throws InternalError unless `peer` is the rank of a peer.
  GlooConnection& to(int peer);

  // Runs `operation` of Gloo with a peer. An exception of it counts as the end of that connection.
  template <typename Operation>
  void run(int peer, Operation operation) {
    try {
      operation();
    } catch (const std::exception& error) {
      fail(peer, error.what());
      throw_if_dead();
    }
  }

  // Ends all waits because the connection to `peer` failed. Names the site that the peer lost, if
  // the peer sent one.
  void fail(int peer, const std::string& reason);
  // Ends all waits of this site, and sends the peers the rank of the lost site.
  void abort(const std::string& site, const std::string& reason);
  // Ends all waits of this site by closing the connection to `peer` in the middle of a message.
  void give_up(int peer);
  // Throws the PeerError that ended all waits, if any.
  void throw_if_dead() const;

  // Adds and removes a buffer whose waits a failure ends.
  void enroll(gloo::transport::UnboundBuffer* buffer);
  void dismiss(gloo::transport::UnboundBuffer* buffer);

  // Must be called when a message to a peer starts to be sent, and when it has been sent. From
  // these times the pacer learns the uplink, and LossWatch the losses. They set the pace of the
  // lanes and their congestion control, except where the mesh's options state these.
  void begin_send();
  void end_send(int peer, uint64_t bytes);

  // Returns the counts of the peer's messages and the kernel's figures of its connections.
  LinkState link(int peer);

 private:
  void listen_for(int peer, const std::string& source_ip, Store& store);
  void listen(GlooLane& lane, int peer, int port, const std::string& source_ip);
  void connect_to(int peer, Store& store);
  void connect(int peer, int lane, const std::vector<char>& peer_address);
  void observe_lines(double now_seconds);
  // Looks at all lanes, and tells of peers to whom they carry nothing.
  void watch_lanes();
  bool stands(GlooConnection& link);
  void change_control(GlooConnection& lossy);
  void end(const std::string& site, const std::string& reason, bool tell_peers);
  void say_farewell(const std::string& lost_site);
  std::string key(int from, int to) const;
  std::string service(int from, int to, int lane) const;

  const MeshOptions mesh_;
  std::vector<GlooConnection> links_;  // by rank; the entry of this site stays empty
  std::mutex ending_mutex_;            // held while one failure is handled; taken before mutex_
  mutable std::mutex mutex_;
  std::optional<PeerError> failure_;                    // guarded by mutex_
  std::set<gloo::transport::UnboundBuffer*> enrolled_;  // guarded by mutex_
  const RealClock clock_;
  std::mutex pacing_mutex_;  // taken before mutex_
  UplinkPacer pacer_;        // guarded by pacing_mutex_, as is observed_seconds_
  double observed_seconds_ = 0;
  std::jthread lane_thread_;  // the last member: it uses others
};

}  // namespace farstep::wan
