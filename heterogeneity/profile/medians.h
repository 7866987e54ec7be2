// Repeats timings and takes medians; every probe uses it.
//
// Not thread-safe: the thread that owns the device calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/base/clock.h"

namespace farstep::heterogeneity {

// The number of repetitions: at least `least`, then until `seconds` have passed, at most `most`.
struct Repeats {
  int64_t least = 3, most = 101;
  double seconds = 1;
};

// Returns the median; of an even number of values the mean of the middle two. `values` is not
// empty.
double median(std::vector<double> values);

// Returns the median seconds of each of `num_cases` cases. The cases take turns, so that a machine
// that changes its speed affects them all. `timed(i)` runs case i and returns the seconds that
// count.
std::vector<double> medians_in_turn(std::size_t num_cases,
                                    const std::function<double(std::size_t)>& timed,
                                    const Repeats& repeats, const Clock& clock);

}  // namespace farstep::heterogeneity
