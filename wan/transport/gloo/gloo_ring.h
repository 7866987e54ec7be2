// Gloo's own ring all-reduce over connections of its own: the baseline for the direct exchange.
//
// Threads: one thread calls all_reduce(), one thread (the same or another) calls socket_bytes().
// Any thread may call abort().
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "trainer/base/error.h"
#include "wan/sockets/process_sockets.h"
#include "wan/transport/all_reduce.h"
#include "wan/transport/mesh.h"
#include "wan/transport/store.h"

namespace gloo {
class AllreduceOptions;
class Context;
}  // namespace gloo

namespace farstep::wan {

class GlooRing : public AllReduce {
 public:
  // Connects to every peer as GlooTransport does, once in a generation. The keys in `store` contain
  // the mesh's generation. The system chooses the ports; mesh.lanes is ignored. An operation fails
  // when no byte moves for `stall_seconds`. Throws PeerError.
  GlooRing(const MeshOptions& mesh, double stall_seconds, Store& store);
  ~GlooRing() override;

  void all_reduce(std::span<float> values) override;

  // Ends all_reduce() with PeerError(site, reason). Only the first call has an effect.
  void abort(const std::string& site, const std::string& reason);

  // Returns the kernel's byte counts of all connections.
  SocketBytes socket_bytes();

 private:
  // Runs an operation of Gloo. Turns its exception into the PeerError of abort(), or into one that
  // names no site.
  template <typename Operation>
  void run(Operation operation);

  const MeshOptions mesh_;
  std::shared_ptr<gloo::Context> context_;
  std::unique_ptr<gloo::AllreduceOptions> operation_;  // under way, or failed
  std::mutex mutex_;
  std::vector<SocketCounter> sockets_;  // guarded by mutex_
  std::optional<PeerError> failure_;    // guarded by mutex_
  uint32_t num_operations_ = 0;
};

}  // namespace farstep::wan
