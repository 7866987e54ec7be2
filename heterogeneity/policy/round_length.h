// Chooses the length of a round in which sites of unequal speed finish whole steps together.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace farstep::heterogeneity {

// A round may differ from its target length by this share, if that reduces the idle time.
inline constexpr double kRoundTolerance = 0.05;

// The time of a site in a round.
struct Pace {
  double overhead_seconds = 0;
  double step_seconds = 0;  // above 0
};

// Returns the local steps of each site, at least 1, with the least share of idle time. The round
// lasts `target_seconds` give or take kRoundTolerance, or as long as the slowest site needs for one
// step. Of equally good lengths it takes the one nearest to the target. Only such a first step
// ends after `most_seconds`.
std::vector<int64_t> steps_to_meet(std::span<const Pace> paces, double target_seconds,
                                   double most_seconds = std::numeric_limits<double>::infinity());

}  // namespace farstep::heterogeneity
