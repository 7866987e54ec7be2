#include "heterogeneity/knowledge/round_timing.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "trainer/base/error.h"

namespace farstep::heterogeneity {

namespace {

// Returns the mean without hiccups: steps of more than twice the median. At most a tenth of the
// steps, and at least one, can be hiccups. A plan needs the sum of the steps, which the mean gives
// and a median does not. One stall of the machine would distort the mean, and so would leaving out
// the slow steps of a device that throttles often.
double mean_without_hiccups(std::span<const double> steps) {
  constexpr double kHiccup = 2;  // times the median
  constexpr std::size_t kStepsOfAHiccup = 10;
  std::vector<double> sorted(steps.begin(), steps.end());
  std::sort(sorted.begin(), sorted.end());
  // The lower median: of two steps the longer one may be a hiccup, the shorter one cannot.
  const double longest = kHiccup * sorted[(sorted.size() - 1) / 2];
  const std::size_t most_hiccups = std::max<std::size_t>(1, sorted.size() / kStepsOfAHiccup);
  for (std::size_t hiccup = 0; hiccup < most_hiccups && sorted.back() > longest; ++hiccup) {
    sorted.pop_back();
  }
  return std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
}

}  // namespace

GradientNoise noise_of_round(std::span<const RoundTiming> timings) {
  GradientNoise sum;
  for (const auto& timing : timings) sum += timing.noise;
  return sum;
}

double typical_step_seconds(std::span<const double> steps) {
  FARSTEP_CHECK(!steps.empty(), "no steps to take a time from");
  // The second half shows a site that has become slower at once. A faster one is believed after a
  // whole round. On a shared machine a site gets faster whenever another one waits; more work for
  // it would make the others wait more.
  return std::max(mean_without_hiccups(steps),
                  mean_without_hiccups(steps.subspan(steps.size() / 2)));
}

double measured_step_seconds(std::span<const double> steps) {
  FARSTEP_CHECK(steps.size() >= 2, "{} steps to take a time from", steps.size());
  // A start makes steps longer and never shorter: memory is allocated, kernels are loaded, products
  // are chosen, a GPU's graph is recorded, and all sites of a machine begin at once.
  const auto last = steps.last(std::min<std::size_t>(2, steps.size() - 1));
  return std::ranges::min(last);
}

bool has_room_for_step(double round_seconds, double elapsed_seconds, double step_seconds,
                       double slack_seconds) {
  return elapsed_seconds + step_seconds <= round_seconds + slack_seconds;
}

}  // namespace farstep::heterogeneity
