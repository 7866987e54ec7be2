// How a site joins a run that goes on: it takes the members' shared state as it is between two
// rounds, and attends the round after it without work of its own.
#pragma once

#include <stop_token>
#include <string_view>

#include "trainer/round/handover.h"
#include "trainer/round/run.h"

namespace farstep {

// Returns the state that the members share: between two rounds, or in a round before its first sync
// the same one. The checksum of the momentum is not in it.
SharedState shared_state(const Run& run);

// Returns the state in a donor's JSON. Throws DataError.
SharedState read_shared_state(std::string_view text);

// Makes `state` the run's, after theta_global and momentum were written. Throws DataError if it is
// no state of this run; another state can be taken then.
void take_shared_state(Run& run, const SharedState& state);

// Attends the round after `state`, which the run has taken. Then the site is a member, and between
// two rounds as the others are. Returns false if a stop was requested. Throws PeerError if the
// round's first sync began before: a newer state must be taken.
bool attend_round(Run& run, const SharedState& state, const std::stop_token& stop);

}  // namespace farstep
