// Gloo's own ring all-reduce over connections of its own: the baseline that the direct exchange is
// measured against.
//
// all_reduce() is one thread's, socket_bytes() one thread's, perhaps another; abort() may come from
// any.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "trainer/base/error.h"
#include "wan/transport/mesh.h"
#include "wan/transport/process_sockets.h"
#include "wan/transport/store.h"

namespace gloo {
class Context;
}

namespace farstep {

class GlooRing {
 public:
  // Connects to every peer, as GlooTransport does, with keys of the mesh's generation in `store`;
  // once in a generation. Ports are the system's, lanes mean nothing. An operation whose bytes stop
  // for `stall_seconds` fails. Throws PeerError.
  GlooRing(const MeshOptions& mesh, double stall_seconds, Store& store);
  ~GlooRing();

  // Sums the sites' values, the same bits everywhere. Throws PeerError; the ring is dead then.
  void all_reduce(std::span<float> values);

  // Ends all_reduce() with PeerError(site, reason); only the first counts.
  void abort(const std::string& site, const std::string& reason);

  // What the kernel counted on the connections.
  SocketBytes socket_bytes();

 private:
  // Runs an operation of Gloo; what it throws leaves as the PeerError of abort(), or one of its
  // own.
  template <typename Operation>
  void run(Operation operation);

  const MeshOptions mesh_;
  std::shared_ptr<gloo::Context> context_;
  std::vector<SocketCounter> sockets_;
  std::mutex mutex_;
  std::optional<PeerError> failure_;  // guarded by mutex_
  uint32_t operations_ = 0;
};

}  // namespace farstep
