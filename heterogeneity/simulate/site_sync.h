// The sync of a fragment at one site of a simulation.
//
// Values and a pure function; thread-safe.
#pragma once

#include <cstdint>

namespace farstep::heterogeneity {

// The consecutive parts of a sync, from the delta on.
struct SyncSeconds {
  double wait = 0;      // until Go has arrived
  double exchange = 0;  // from Go until the mean has arrived
  double outer = 0;     // the outer step
  double vote = 0;      // until the site knows that the sync is committed

  double wan() const { return exchange + vote; }
};

// Returns the rest of each part if training hides the first `hidden_seconds` of the sync.
SyncSeconds exposed_part(const SyncSeconds& all, double hidden_seconds);

struct SiteSync {
  int64_t fragment = 0;
  int64_t applied_after = 0;  // inner steps of the round
  SyncSeconds all = {};
  SyncSeconds exposed = {};     // the part of it in which the site did not train
  double averaging_weight = 0;  // of the site's delta
  int64_t sent_bytes = 0, received_bytes = 0;
};

}  // namespace farstep::heterogeneity
