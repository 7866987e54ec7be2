// How the replicas of the sites stay together: the one place that decides what crosses the WAN, and
// when.
//
// The training loop owns theta_local and calls the strategy between its inner steps. All methods
// are called by the training thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "wan/membership/protocol.h"

namespace farstep {

// What a finished sync tells.
struct SyncRecord {
  int64_t generation = 0;
  double averaging_weight = 0;  // of this site's delta
  std::string theta_hash;       // of theta_global after the outer step
  // This site's own work around the sync, which the next plan makes room for.
  double own_seconds = 0;
  std::vector<Contribution> contributions;  // of all sites, in order of site ids
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // The state that all replicas share, and the outer optimizer's own; host memory, flat, fp32.
  virtual std::span<float> theta_global() = 0;
  virtual std::span<float> outer_momentum() = 0;

  // Ends the round: waits for the peers, exchanges, commits, and writes the new theta into
  // `theta_local` (host memory). Nothing has changed if it returns nothing (a stop was asked for
  // while waiting) or throws (PeerError; InternalError if the sites' hashes differ).
  virtual std::optional<SyncRecord> end_round(int64_t round, const Contribution& contribution,
                                              std::span<float> theta_local,
                                              std::stop_token stop) = 0;
};

}  // namespace farstep
