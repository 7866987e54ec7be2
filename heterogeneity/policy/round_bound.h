// How long a round may be under the policy `hybrid`: a site that is much slower than the others
// must not make them take thousands of steps between two syncs.
//
// The loss grows with the local steps H. DiLoCo (Douillard et al. 2023, arXiv 2311.08105) measured
// 2.9 % more perplexity for H = 1,000 than for 50; nothing measured goes beyond. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "heterogeneity/policy/plan_config.h"
#include "heterogeneity/policy/round_length.h"

namespace farstep::heterogeneity {

// The most local steps that DiLoCo was measured with.
inline constexpr int64_t kMostStudiedSteps = 1000;

// Returns the most local steps of a site: plan.most_steps, or its default.
int64_t most_local_steps(const PlanConfig& config);

struct RoundBound {
  double seconds = 0;
  std::string reason;  // "no site takes more than 1,000 steps (plan.most_steps)"
};

// Returns the longest round in which no site of `paces`, which is not empty, exceeds the settings.
// `in_seconds`: the paces are seconds, not relative to the slowest site.
RoundBound round_bound(const PlanConfig& config, std::span<const Pace> paces, bool in_seconds);

// Throws ConfigError in `file` if the settings contradict each other, or nothing obeys them.
void check_round_bound(const PlanConfig& config, const std::string& file);

}  // namespace farstep::heterogeneity
