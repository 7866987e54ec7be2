#include "heterogeneity/profile/medians.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep::heterogeneity {

// A median, because disturbed times are always longer, and a mean follows them.
double median(std::vector<double> values) {
  FARSTEP_CHECK(!values.empty(), "no values have no median");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// One sample of each case in every turn, so that all cases see the same changes of the machine.
std::vector<double> medians_in_turn(std::size_t num_cases,
                                    const std::function<double(std::size_t)>& timed,
                                    const Repeats& repeats, const Clock& clock) {
  const double end_seconds = clock.now_seconds() + repeats.seconds;
  std::vector<std::vector<double>> samples(num_cases);
  for (int64_t turn = 0; turn < repeats.most; ++turn) {
    if (turn >= repeats.least && clock.now_seconds() >= end_seconds) break;
    for (std::size_t i = 0; i < num_cases; ++i) samples[i].push_back(timed(i));
  }
  std::vector<double> medians;
  for (auto& of_case : samples) medians.push_back(median(std::move(of_case)));
  return medians;
}

}  // namespace farstep::heterogeneity
