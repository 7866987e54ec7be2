// The inner learning rate as a function of the run's progress, so that it is equal at every site.
#pragma once

#include "trainer/inner/inner_config.h"

namespace farstep {

// Returns the learning rate at `progress` in [0, 1]: linear from 0 to the peak over
// warmup_fraction, then half a cosine down to final_fraction of the peak.
double learning_rate(const InnerConfig& config, double progress);

}  // namespace farstep
