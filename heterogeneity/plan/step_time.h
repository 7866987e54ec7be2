// How long an inner step takes, as a function of its batch: a line fitted to measurements, for what
// is compared and printed, and a table that follows them, for what is predicted. Time does not grow
// in proportion with the micro-batch where larger buffers leave a cache or what an allocator keeps.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heterogeneity/plan/site_profile.h"

namespace farstep {

// What a forward and backward of so many sequences takes.
struct PassTime {
  int64_t sequences = 0;
  double seconds = 0;
};

// Made by fit_step_time(). No time in it is below zero.
struct StepTimeFit {
  // The line: step + micro_batch * ceil(batch / micro_batch) + sequence * batch.
  double step_seconds = 0;         // once a step: the optimizer's update
  double micro_batch_seconds = 0;  // once a pass; 0 unless accumulation was measured
  double sequence_seconds = 0;     // once a sequence
  int64_t least_batch = 1;         // smaller batches are taken to last as long as this one
  double relative_error = 0;       // largest |line - measured| / measured

  // The table: the cost once a step, from steps of several passes of one size, and what its passes
  // take: the line's cost of an empty one, then the measured sizes, ascending, a larger one no
  // faster. Linear in between; beyond the last it grows by sequence_seconds.
  double update_seconds = 0;
  std::vector<PassTime> passes{};

  // What a step is predicted to take, by the table. It never falls with the batch, and never makes
  // a sequence cheaper in a pass smaller than all measured ones. Both at least 1.
  double seconds(int64_t batch, int64_t micro_batch) const;

  // What the line says. Both at least 1.
  double line_seconds(int64_t batch, int64_t micro_batch) const;
};

// Least squares over the measurements, relative errors weighing the same. One measurement cannot
// tell fixed from growing costs: a larger batch is taken to last in proportion, a smaller one as
// long, so that no speed is promised that was not seen. Nothing without measurements.
std::optional<StepTimeFit> fit_step_time(std::span<const StepTime> measured);

}  // namespace farstep
