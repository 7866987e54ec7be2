// The meeting of all sites in a sync: arrive(), then the exchange, then vote(). A sync counts at
// every site or at none.
//
// Any thread may call it, one at a time.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "wan/membership/protocol.h"

namespace farstep {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Reports that this site has taken its delta, and waits without a deadline until all sites have.
  // Returns nullopt if a stop was requested before. `theta_hash` is checksum_text() of the fragment
  // of theta_global before the sync. Throws PeerError if a site is lost, InternalError if the
  // hashes differ.
  virtual std::optional<Go> arrive(const SyncId& sync, const Contribution& contribution,
                                   const std::string& theta_hash, std::stop_token stop) = 0;

  // Reports that the exchange is done and the hash of the theta_global that would follow. Waits
  // until all sites have voted for the same one; then the sync counts. Throws as arrive() does.
  virtual void vote(const SyncId& sync, const std::string& theta_hash) = 0;
};

}  // namespace farstep
