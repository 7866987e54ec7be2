// The training loop of a site: one outer round after the other.
#pragma once

#include "trainer/round/round_stop.h"
#include "trainer/round/run.h"

namespace farstep {

// Runs one outer round, as ARCHITECTURE.md describes it. A stop ends it: with its syncs, if the
// site has time to hand in its steps, has done one, and is not being measured; else before them.
// Returns false if a stop was requested before all that is due after the
// round was done. Then no sync is under way, and the run can be saved as it is. The same holds when
// it throws PeerError because a peer is lost. Other errors leave the run as it is.
bool run_round(Run& run, const RoundStop& stop);

// Runs rounds until the run's last round is committed. Returns false if a stop was requested
// before.
bool run_rounds(Run& run, const RoundStop& stop);

}  // namespace farstep
