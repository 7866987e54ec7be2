// theta_global in the model's own memory, for what reads a model there.
#pragma once

#include "trainer/round/run.h"

namespace farstep {

// Swaps theta_global and theta_local, unless they are equal. Waits first until the states that this
// site hands over are copied. Called between two rounds, and once more to swap back.
void swap_global_and_local(Run& run);

}  // namespace farstep
