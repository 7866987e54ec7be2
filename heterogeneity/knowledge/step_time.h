// The time of an inner step as a function of its batch. A line fitted to the measurements is for
// comparing and printing. A table that follows the measurements is for predictions: time is not
// proportional to the micro-batch when larger buffers exceed a cache or an allocator's reserve.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heterogeneity/knowledge/site_profile.h"

namespace farstep::heterogeneity {

// The time of a forward and backward of `sequences`.
struct PassTime {
  int64_t sequences = 0;
  double seconds = 0;
};

// The result of fit_step_time(). None of its times is negative.
struct StepTimeFit {
  // The line: step + micro_batch * ceil(batch / micro_batch) + sequence * batch.
  double step_seconds = 0;         // for a step: the optimizer's update
  double micro_batch_seconds = 0;  // for a pass; 0 unless accumulation was measured
  double sequence_seconds = 0;     // for a sequence
  int64_t least_batch = 1;         // smaller batches are assumed to take as long as this one
  double relative_error = 0;       // largest |line - measured| / measured

  // The table: the cost of a step besides its passes, and the cost of passes by size. The latter
  // begins with the line's cost of an empty pass; then come the measured sizes, ascending, a larger
  // one never faster. It is linear in between, and beyond the last it grows by sequence_seconds.
  double update_seconds = 0;
  std::vector<PassTime> passes{};

  // Returns the predicted time of a step by the table. It never falls with the batch, and a pass
  // smaller than all measured ones never makes a sequence cheaper. Both arguments are at least 1.
  double seconds(int64_t batch, int64_t micro_batch) const;

  // Returns the time by the line. Both arguments are at least 1.
  double line_seconds(int64_t batch, int64_t micro_batch) const;
};

// Fits by least squares of the relative errors. One measurement cannot separate fixed from growing
// costs: a larger batch is then assumed to take proportionally longer, and a smaller one as long.
// So no unmeasured speed is promised. Returns nullopt without measurements.
std::optional<StepTimeFit> fit_step_time(std::span<const StepTime> measured);

}  // namespace farstep::heterogeneity
