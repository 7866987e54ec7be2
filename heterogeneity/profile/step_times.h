// How long real inner steps take, at several micro-batches and with accumulation.
//
// Not thread-safe: called by the thread that owns the device.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heterogeneity/plan/site_profile.h"
#include "trainer/base/clock.h"

namespace farstep {

// The steps to time for a run of micro-batches of `micro_batch` on a device that holds
// `max_micro_batch` (both at least 1): that micro-batch or the largest that fits, its double and
// fourfold or else its half, and two of it accumulated. Their `seconds` are 0.
std::vector<StepTime> steps_to_time(int64_t micro_batch, int64_t max_micro_batch);

// The median seconds of each of `steps`, all taking turns after one warm-up each, at least three
// times and then for `seconds`. `warm_up` and `timed` take one inner step of (batch, micro_batch)
// and return when the device is done; `timed` returns how long it took, an emulated speed included.
std::vector<StepTime> measure_step_times(std::vector<StepTime> steps,
                                         const std::function<void(int64_t, int64_t)>& warm_up,
                                         const std::function<double(int64_t, int64_t)>& timed,
                                         double seconds, const Clock& clock);

}  // namespace farstep
