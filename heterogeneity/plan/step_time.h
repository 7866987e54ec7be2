// How long an inner step takes, as a function of its batch: fitted to measurements.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "heterogeneity/plan/site_profile.h"

namespace farstep {

// t(batch, micro_batch) = step + micro * ceil(batch / micro_batch) + sequence * batch, no
// coefficient below zero.
struct StepTimeFit {
  double step_seconds = 0;  // once a step: the optimizer's update
  double micro_batch_seconds =
      0;                        // once a forward and backward; 0 unless accumulation was measured
  double sequence_seconds = 0;  // once a sequence
  int64_t least_batch = 1;      // smaller batches are taken to last as long as this one
  double relative_error = 0;    // largest |fit - measured| / measured

  // Both at least 1.
  double seconds(int64_t batch, int64_t micro_batch) const;
};

// Least squares over the measurements, relative errors weighing the same. One measurement cannot
// tell fixed from growing costs: a larger batch is taken to last in proportion, a smaller one as
// long, so that no speed is promised that was not seen. Nothing without measurements.
std::optional<StepTimeFit> fit_step_time(std::span<const StepTime> measured);

}  // namespace farstep
