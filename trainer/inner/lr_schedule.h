// The inner learning rate as a function of the run's progress, so that it is equal at every site.
#pragma once

#include "trainer/inner/inner_config.h"

namespace farstep {

// Returns the learning rate at `progress` in [0, 1]: linear from 0 to the peak over
// warmup_fraction, then half a cosine down to final_fraction of the peak.
double learning_rate(const InnerConfig& config, double progress);

// Returns how many steps AdamW with fresh moments needs to warm up in mid-run: 2 / (1 - beta2) (Ma
// and Yarats, "On the adequacy of untuned warmup for adaptive optimization", AAAI 2021).
int64_t steps_of_warm_up(const InnerConfig& config);

}  // namespace farstep
