// What is done for a validation between two rounds, and what follows from it.
#pragma once

#include <span>

#include "trainer/round/run.h"

namespace farstep {

// Swaps theta_global and theta_local in the model's own memory, unless they are equal. Waits first
// until the states that this site hands over are copied. Called between two rounds, and once more
// to swap back.
void swap_global_and_local(Run& run);

// Judges the validation that the syncs of a round have brought (RoundRecord::syncs()), and does
// what evaluate.on_rise says of a loss that has risen far. All members do the same between the same
// two rounds. To go back is to take the weights and the outer momentum of an older checkpoint: the
// count of rounds, the learning rate and the data go on. Throws DivergenceError to stop;
// StaleStateError if the site has not got that checkpoint.
void heed_validation(Run& run, std::span<const SyncRecord> syncs);

}  // namespace farstep
