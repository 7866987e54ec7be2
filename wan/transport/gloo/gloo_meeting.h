// Makes the connections with all peers that have none yet, at once. Private to the unit.
//
// One object serves one mesh. Not thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "wan/transport/gloo/gloo_connection.h"
#include "wan/transport/gloo/kept_connections.h"
#include "wan/transport/mesh.h"
#include "wan/transport/store.h"

namespace farstep::wan {

// Returns at least one millisecond, because Gloo reads 0 as "for ever" in some places, and at most
// 1e9 seconds, because Gloo adds it to a clock that counts nanoseconds.
std::chrono::milliseconds to_milliseconds(double seconds);

class GlooMeeting {
 public:
  // All references must outlive it. `taken` are the sockets of other connections.
  GlooMeeting(const MeshOptions& mesh, KeptConnections& kept, Store& store, std::vector<int> taken);

  // Connects to all `peers` within connect_seconds; the first failure ends all. `links` as of a
  // GlooTransport. Returns the connections by rank. Throws PeerError that names the peer, and
  // throw_cannot_listen()'s errors.
  std::map<int, GlooConnectionPtr> connect(const std::vector<int>& peers,
                                           const std::vector<PeerLink>& links);

 private:
  void listen(GlooConnection& connection, int peer);
  void listen(GlooLane& lane, int port);
  void keep_strangers_away(const std::vector<PeerLink>& links);
  void offer(int peer, const std::string& source_ip);
  // Returns where each peer listens for this site, by rank and lane.
  std::map<int, std::vector<SocketAddress>> exchange_addresses();
  void dial(int peer, int lane_number, const SocketAddress& there);
  void fail(int peer, const std::string& reason);
  void find_sockets(const std::map<int, std::vector<SocketAddress>>& addresses);
  std::string service(int from, int to, int lane) const;

  const MeshOptions& mesh_;
  KeptConnections& kept_;
  Store& store_;
  const std::vector<int> taken_;
  std::map<int, GlooConnectionPtr> made_;
  std::mutex mutex_;
  std::optional<PeerError> failure_;  // guarded by mutex_: the first one
};

}  // namespace farstep::wan
