// Handing the run's state over in the middle of a round: the state of the round's start, as long as
// no sync of the round has begun. The newcomer attends this round, and trains from the next one.
#pragma once

#include <cstdint>

#include "trainer/round/run.h"

namespace farstep {

// Begins to send the state to the newcomers for which the coordinator asks this site. Called
// between two steps of a round. Sends nothing once a sync of the round has begun. Nor does it if
// the others would wait longer than the newcomer saves. The newcomer then gets the state after the
// round.
void hand_over_in_mid_round(Run& run);

// Returns whether a state that is sent now, and not after the round, saves more time than it costs.
// The round ends in `rest_seconds`, and rounds take `round_seconds`.
bool is_worth_sending(double transfer_seconds, double rest_seconds, double round_seconds,
                      int64_t num_members);

}  // namespace farstep
