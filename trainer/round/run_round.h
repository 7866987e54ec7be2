// The training loop of a site: one outer round after the other.
#pragma once

#include <stop_token>

#include "trainer/round/run.h"

namespace farstep {

// Runs one outer round, as ARCHITECTURE.md describes it. Returns false if a stop was requested
// before the round's end. Then no sync is under way, and the run can be saved as it is. The same
// holds when it throws PeerError because a peer is lost. Other errors leave the run as it is.
bool run_round(Run& run, const std::stop_token& stop);

// Runs rounds until the run's last round is committed. Returns false if a stop was requested
// before.
bool run_rounds(Run& run, const std::stop_token& stop);

}  // namespace farstep
