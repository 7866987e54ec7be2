// Timings that are repeated until they are steady: every probe takes the median of many.
//
// Not thread-safe: called by the thread that owns the device.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/base/clock.h"

namespace farstep {

// How often something is repeated: at least `least` times, then until `seconds` have passed, but no
// more than `most` times.
struct Repeats {
  int64_t least = 3, most = 101;
  double seconds = 1;
};

// The median; of an even number the mean of the two in the middle. `values` is not empty.
double median(std::vector<double> values);

// Median seconds of each of `num_cases` cases, which take turns so that a machine that speeds up or
// slows down does so for all of them. `timed(i)` runs case i and returns the seconds that count.
std::vector<double> medians_in_turn(std::size_t num_cases,
                                    const std::function<double(std::size_t)>& timed,
                                    const Repeats& repeats, const Clock& clock);

}  // namespace farstep
