// Where the sites of a run meet for a sync.
//
// arrive() -> the exchange -> vote(): a sync counts at every site or at none. May be called from
// any thread, by one at a time.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "wan/membership/protocol.h"

namespace farstep {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Says that this site's delta is taken and waits, as long as it takes, until all sites say so;
  // nothing if stop was requested before. `theta_hash` is checksum_text() of the fragment of
  // theta_global. Throws PeerError if a site is lost, InternalError if the hashes differ.
  virtual std::optional<Go> arrive(const SyncId& sync, const Contribution& contribution,
                                   const std::string& theta_hash, std::stop_token stop) = 0;

  // Says that the exchange is done, and which theta_global would follow; returns when all sites say
  // the same: the sync counts. Throws as arrive() does.
  virtual void vote(const SyncId& sync, const std::string& theta_hash) = 0;
};

}  // namespace farstep
