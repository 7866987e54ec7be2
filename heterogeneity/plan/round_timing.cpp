#include "heterogeneity/plan/round_timing.h"

#include <algorithm>
#include <vector>

#include "trainer/base/error.h"

namespace farstep {

double typical_step_seconds(std::span<const double> steps) {
  constexpr double kHiccup = 2;  // times the median
  FARSTEP_CHECK(!steps.empty(), "no steps to take a time from");
  const auto late = steps.subspan(steps.size() / 2);
  std::vector<double> sorted(late.begin(), late.end());
  // The lower of two middle ones: of two steps the longer may be a hiccup, the shorter cannot.
  const auto median = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), median, sorted.end());
  const double longest = kHiccup * *median;
  double sum = 0;
  int64_t counted = 0;
  for (const double seconds : late) {
    if (seconds > longest) continue;
    sum += seconds;
    ++counted;
  }
  return sum / static_cast<double>(counted);
}

bool has_room_for_step(double round_seconds, double elapsed_seconds, double step_seconds,
                       double slack_seconds) {
  return elapsed_seconds + step_seconds <= round_seconds + slack_seconds;
}

}  // namespace farstep
