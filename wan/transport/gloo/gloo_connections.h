// The connections of a GlooTransport: takes or opens, watches and ends them. Private to that unit.
//
// Thread-safe after open() has returned. An exception of Gloo ends all waits of the site and
// becomes a PeerError.
#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/clock.h"
#include "trainer/base/error.h"
#include "wan/transport/gloo/gloo_connection.h"
#include "wan/transport/gloo/kept_connections.h"
#include "wan/transport/lines/uplink_pacer.h"
#include "wan/transport/mesh.h"
#include "wan/transport/store.h"
#include "wan/transport/transport.h"

namespace farstep::wan {

class GlooConnections {
 public:
  // Leaves in `kept` what is clean when it ends. `kept` must outlive it.
  GlooConnections(const MeshOptions& mesh, KeptConnections& kept);
  ~GlooConnections();

  // Connects to all peers and starts to watch them. GlooTransport's constructor has the contract.
  void open(const std::vector<PeerLink>& links, Store& store);
  // Must be called if the mesh cannot be made: tells the peers, and leaves no connection.
  void give_up_all(const std::string& site, const std::string& reason);

  const MeshOptions& mesh() const { return mesh_; }
  std::vector<int> peers() const;
  // Throws InternalError unless `peer` is the rank of a peer.
  GlooConnection& to(int peer);
  // Whether the connection was made for an earlier mesh.
  bool is_kept(int peer) { return to(peer).generation() != mesh_.generation; }

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
  void begin(int peer, GlooConnectionPtr connection);
  void observe_lines(double now_seconds);
  // Looks at all lanes, and reports each peer whose lanes carry nothing.
  void watch_lanes();
  bool stands(GlooConnection& link);
  void change_control(GlooConnection& lossy);
  void end(const std::string& site, const std::string& reason, bool tell_peers);
  void say_farewell(const std::string& lost_site);

  const MeshOptions mesh_;
  KeptConnections& kept_;
  std::vector<GlooConnectionPtr> links_;  // by rank; the entry of this site stays empty
  std::mutex ending_mutex_;               // held while one failure is handled; taken before mutex_
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
