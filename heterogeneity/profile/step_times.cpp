#include "heterogeneity/profile/step_times.h"

#include <algorithm>

#include "heterogeneity/profile/medians.h"
#include "trainer/base/error.h"

namespace farstep::heterogeneity {

// The accumulated step separates the cost of an update from that of a pass; other sizes give the
// shape over the micro-batch.
std::vector<StepTime> steps_to_time(int64_t micro_batch, int64_t max_micro_batch) {
  FARSTEP_CHECK(micro_batch >= 1 && max_micro_batch >= 1, "micro-batches have sequences");
  const int64_t planned = std::min(micro_batch, max_micro_batch);
  std::vector<StepTime> steps{{.micro_batch = planned, .batch = std::nullopt, .seconds = 0},
                              // Four passes instead of two tell the cost of an update from that of
                              // a pass with two thirds of the error.
                              {.micro_batch = planned, .batch = 4 * planned, .seconds = 0}};
  const auto add = [&steps](int64_t other) {
    steps.push_back({.micro_batch = other, .batch = std::nullopt, .seconds = 0});
  };
  for (const int64_t larger : {2 * planned, 4 * planned}) {
    if (larger <= max_micro_batch) add(larger);
  }
  // Without room for larger sizes half a micro-batch gives the shape.
  if (2 * planned > max_micro_batch && planned > 1) add(planned / 2);
  return steps;
}

std::vector<StepTime> measure_step_times(std::vector<StepTime> steps,
                                         const std::function<void(int64_t, int64_t)>& untimed,
                                         const std::function<double(int64_t, int64_t)>& timed,
                                         double seconds, const Clock& clock) {
  const auto settled = [&](std::size_t i) {
    const int64_t micro_batch = steps[i].micro_batch;
    // A step after one of another size finds the allocator's memory in another state and takes
    // longer. In a run all steps have one size.
    if (i == 0 || steps[i - 1].micro_batch != micro_batch) untimed(micro_batch, micro_batch);
    return timed(steps[i].batch.value_or(micro_batch), micro_batch);
  };
  const auto medians =
      medians_in_turn(steps.size(), settled, {.least = 3, .seconds = seconds}, clock);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].seconds = medians[i];
  return steps;
}

}  // namespace farstep::heterogeneity
