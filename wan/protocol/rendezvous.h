// The meeting of all sites in a sync: arrive(), then the exchange, then vote(). A sync counts at
// every site or at none.
//
// The signal that starts the exchange names the members that take part. If one of them is lost
// before all have voted, the sync has no effect. It can be begun again by arrive() once a new
// generation has begun: is_renewed().
//
// Any thread may call it, one at a time.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "wan/protocol/protocol.h"

namespace farstep::wan {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Reports that this site has taken its delta, and waits without a deadline until all sites have.
  // Returns nullopt if a stop was requested before. `theta_hash` is checksum_text() of the fragment
  // of theta_global before the sync. Throws PeerError if the run ends because a site is lost,
  // InternalError if the hashes differ.
  virtual std::optional<Go> arrive(const SyncId& sync, const Contribution& contribution,
                                   const std::string& theta_hash, std::stop_token stop) = 0;

  // Reports that the exchange is done and the hash of the theta_global that would follow. Waits
  // until all members have voted for the same one; then the sync counts. Returns false if a stop
  // was requested while the run pauses: it does not count here. Throws as arrive() does, and
  // PeerError if a member is lost before that.
  virtual bool vote(const SyncId& sync, const std::string& theta_hash, std::stop_token stop) = 0;

  // Called when an exchange of `generation` failed, by the loss of `suspect` (empty if unknown).
  // Waits until a newer generation has begun, or a stop was requested while the run pauses. Returns
  // false if none begins: the suspect lives. Throws PeerError if the run ends because a site is
  // lost.
  virtual bool is_renewed(int64_t generation, const std::string& suspect, std::stop_token stop) = 0;
};

}  // namespace farstep::wan
