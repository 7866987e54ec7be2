// What a site says of a delta when it arrives at a sync. Values; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/config/fields.h"

namespace farstep::outer_optimizer {

// The figures of one fragment's delta, with its residual, as it would be sent. All are finite.
//
// A delta's pace is log(norm / sum of the learning rates of its steps). Neither the schedule nor
// the number of steps changes it much.
struct DeltaFigures {
  double norm = 0;     // Euclidean
  double largest = 0;  // magnitude of a value
  // The largest magnitude of a value that the inner optimizer can make in these steps; 0: unknown.
  double bound = 0;
  // Of the paces of the site's last deltas of the fragment that counted: their median, the median
  // distance from it, and their number.
  double usual_pace = 0, pace_spread = 0;
  int64_t known_paces = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("norm", norm, "its Euclidean norm", at_least(0));
    visit("largest", largest, "the largest magnitude of a value", at_least(0));
    visit("bound", bound, "the largest magnitude that its steps can make; 0: unknown", at_least(0));
    visit("usual_pace", usual_pace,
          "median of log(norm / rates) of the site's last deltas of the fragment that counted");
    visit("pace_spread", pace_spread, "median distance from it", at_least(0));
    visit("known_paces", known_paces, "the number of these deltas", in_range(0, 1000));
  }
  bool operator==(const DeltaFigures&) const = default;
};

}  // namespace farstep::outer_optimizer
