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
// `max_micro_batch` (both at least 1): that micro-batch or the largest that fits, four of it
// accumulated, and its double and fourfold or else its half. Their `seconds` are 0. The further
// apart the first two are, the better they tell the cost once a step from a pass's.
std::vector<StepTime> steps_to_time(int64_t micro_batch, int64_t max_micro_batch);

// The median seconds of each of `steps`, all taking turns, at least three times and then for
// `seconds`. `untimed` and `timed` take one inner step of (batch, micro_batch) and return when the
// device is done; `timed` returns how long it took, an emulated speed included. An untimed pass
// goes before the first step of a turn and wherever the micro-batch changes: in a run no step finds
// the memory as a step of another size left it. Where all is measured that is 18 passes of the
// smallest micro-batch a turn rather than 11.
std::vector<StepTime> measure_step_times(std::vector<StepTime> steps,
                                         const std::function<void(int64_t, int64_t)>& untimed,
                                         const std::function<double(int64_t, int64_t)>& timed,
                                         double seconds, const Clock& clock);

}  // namespace farstep
