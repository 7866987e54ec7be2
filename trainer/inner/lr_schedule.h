// The inner learning rate, driven by the run's progress so that it is the same at every site.
#pragma once

#include "trainer/config/run_config.h"

namespace farstep {

// Learning rate at `progress` in [0, 1]: linear from 0 to the peak over warmup_fraction, then half
// a cosine down to final_fraction of the peak.
double learning_rate(const InnerConfig& config, double progress);

}  // namespace farstep
