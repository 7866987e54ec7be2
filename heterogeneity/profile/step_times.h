// Measures real inner steps with several micro-batches and with accumulation.
//
// Not thread-safe: the thread that owns the device calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heterogeneity/knowledge/site_profile.h"
#include "trainer/base/clock.h"

namespace farstep::heterogeneity {

// Returns the steps to time, for a run with `micro_batch` on a device that fits `max_micro_batch`
// (both at least 1). They are: that micro-batch or the largest that fits; four of them accumulated;
// and its double and fourfold, or else its half. Their `seconds` are 0. The first two should be far
// apart, because their difference separates the cost of a step from that of a pass.
std::vector<StepTime> steps_to_time(int64_t micro_batch, int64_t max_micro_batch);

// Returns the median seconds of each of `steps`. They take turns, at least three times and then for
// `seconds`. `untimed` and `timed` take one inner step of (batch, micro_batch) and return when the
// device is done. `timed` returns its time, including an emulated speed. An untimed pass comes
// before the first step of a turn and after each change of the micro-batch. In a run, too, no step
// finds the memory of a step of another size. With all cases a turn has 18 passes of the smallest
// micro-batch instead of 11.
std::vector<StepTime> measure_step_times(std::vector<StepTime> steps,
                                         const std::function<void(int64_t, int64_t)>& untimed,
                                         const std::function<double(int64_t, int64_t)>& timed,
                                         double seconds, const Clock& clock);

}  // namespace farstep::heterogeneity
