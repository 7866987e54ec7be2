// One inner step of the training loop, from its batch to its record.
//
// Belong to the training thread.
#pragma once

#include "trainer/run/session.h"

namespace farstep {

// Takes the next inner step of the round. Where the host may be ahead of its GPU the step is under
// way when this returns, and the one before it is recorded.
void take_step(Session& session);

// Waits for the step under way, if there is one, and records it: comes before whatever counts or
// saves what the round has done.
void finish_step(Session& session);

}  // namespace farstep
