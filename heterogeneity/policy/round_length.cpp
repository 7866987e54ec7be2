#include "heterogeneity/policy/round_length.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heterogeneity/policy/plan.h"

namespace farstep::heterogeneity {

namespace {

// Tolerance for the rounding of divisions, in steps and in shares of idle time.
constexpr double kRounding = 1e-9;
// Each candidate costs a pass over all sites. With 64 of them, a plan for 1,000 sites takes 2 to 3
// ms (docs/results/planning.md).
constexpr std::size_t kMostCandidates = 64;
// 16 steps are the whole kRoundTolerance of a site that takes up to 320 steps. With more steps a
// round loses little by rounding wherever it ends.
constexpr int64_t kCandidatesAround = 16;  // steps of one site, before and after the target

// At least one step, since every site must bring something to the sync.
int64_t steps_until(const Pace& pace, double end_seconds) {
  const double steps =
      std::floor((end_seconds - pace.overhead_seconds) / pace.step_seconds + kRounding);
  // The limit lets an absurd figure reach make_plan(), which names the site, instead of
  // overflowing.
  return static_cast<int64_t>(std::clamp(steps, 1.0, static_cast<double>(kMostWork + 1)));
}

double end_of(const Pace& pace, int64_t steps) {
  return pace.overhead_seconds + static_cast<double>(steps) * pace.step_seconds;
}

// Returns the sites' idle share of their time if no step ends after `end_seconds`. A share, because
// idle seconds alone would favour short rounds.
double idle_share(std::span<const Pace> paces, double end_seconds) {
  double last = 0;
  double sum = 0;
  for (const auto& pace : paces) {
    const double end = end_of(pace, steps_until(pace, end_seconds));
    last = std::max(last, end);
    sum += end;
  }
  return 1 - sum / (last * static_cast<double>(paces.size()));
}

// Returns the target, and ends of steps around it from `least` to `most`. The slowest sites come
// first, because they lose most by rounding.
std::vector<double> candidate_ends(std::span<const Pace> paces, double target, double least,
                                   double most) {
  std::vector<Pace> slowest_first(paces.begin(), paces.end());
  std::sort(slowest_first.begin(), slowest_first.end(), [](const Pace& a, const Pace& b) {
    return std::pair(a.step_seconds, a.overhead_seconds) >
           std::pair(b.step_seconds, b.overhead_seconds);
  });
  std::vector<double> ends{target};
  for (const auto& pace : slowest_first) {
    const int64_t around = steps_until(pace, target);
    for (int64_t steps = std::max<int64_t>(1, around - kCandidatesAround);
         steps <= around + kCandidatesAround; ++steps) {
      const double end = end_of(pace, steps);
      if (end >= least && end <= most) ends.push_back(end);
      if (ends.size() == kMostCandidates) return ends;
    }
  }
  return ends;
}

}  // namespace

// Rounding each site down to whole steps leaves a site idle for half a step on average. The idle
// time over the length of the round is a sawtooth, so a slightly different length can waste much
// less.
std::vector<int64_t> steps_to_meet(std::span<const Pace> paces, double target_seconds,
                                   double most_seconds) {
  double least = target_seconds * (1 - kRoundTolerance);
  // No site can end before its first step does.
  for (const auto& pace : paces) least = std::max(least, end_of(pace, 1));
  const double most =
      std::max(std::min(target_seconds * (1 + kRoundTolerance), most_seconds), least);
  const double target = std::clamp(target_seconds, least, most);

  // The least idle time is at the end of some site's step, so only such lengths are tried.
  double best_end = target;
  double best_share = idle_share(paces, target);
  for (const double end : candidate_ends(paces, target, least, most)) {
    const double share = idle_share(paces, end);
    const bool nearer = std::abs(end - target) < std::abs(best_end - target);
    if (share < best_share - kRounding || (share < best_share + kRounding && nearer)) {
      best_share = share;
      best_end = end;
    }
  }
  std::vector<int64_t> steps;
  for (const auto& pace : paces) steps.push_back(steps_until(pace, best_end));
  return steps;
}

}  // namespace farstep::heterogeneity
