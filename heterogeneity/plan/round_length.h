// How long a round is to be, so that sites of unequal speed end it with whole steps together.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace farstep {

// By how much a round may be longer or shorter than it is to be, where that leaves less idle time.
inline constexpr double kRoundTolerance = 0.05;

// What a site's time in a round is made of.
struct Pace {
  double overhead_seconds = 0;
  double step_seconds = 0;  // above 0
};

// Local steps of each site, at least 1, with which the sites idle for the least share of the round.
// It lasts `target_seconds` give or take kRoundTolerance, or as long as the slowest site needs for
// one step. Of equally good lengths the one nearest to the target counts.
std::vector<int64_t> steps_to_meet(std::span<const Pace> paces, double target_seconds);

}  // namespace farstep
