// What each site's delta counts in the mean.
//
// Pure functions; thread-safe. Every site computes the coefficients from the same list of
// contributions, in site order, and so gets the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/config/run_config.h"

namespace farstep {

// What a site brings to a sync.
struct Work {
  int64_t steps = 0;   // inner steps since the last sync; 0 for a joiner that brings nothing
  int64_t batch = 0;   // sequences of an inner step
  int64_t tokens = 0;  // trained since the last sync
};

// The coefficients c_i of mean = sum_i c_i delta_i, in the order of `works`:
//   uniform                  1 / N
//   tokens                   T_i / sum T
//   batch                    B_i / sum B
//   tokens_squared_per_step  (T_i^2 / H_i) / sum (T^2 / H)
//   fednova                  mean(H) (T_i / sum T) / H_i: deltas a step, weighted by tokens, times
//                            the mean number of steps (Wang et al. 2020, section 4)
// They sum to 1 (fednova's only where all H are equal). Who has no steps gets 0 and is in no sum.
// Throws InternalError if nobody has steps.
std::vector<double> averaging_coefficients(AveragingRule rule, std::span<const Work> works);

}  // namespace farstep
