// Configs and figures of plans.
#pragma once

#include <cmath>
#include <vector>

#include "heterogeneity/policy/policy.h"

namespace farstep::heterogeneity {

inline PlanConfig plan_config(Policy policy) {
  PlanConfig config;
  config.policy = policy;
  return config;
}

inline std::vector<int64_t> steps_of(const RoundPlan& plan) {
  std::vector<int64_t> steps;
  for (const auto& site : plan.sites) steps.push_back(site.local_steps);
  return steps;
}

// Idle time as a share of all sites' time.
inline double idle_share(const RoundPlan& plan) {
  return total_idle_seconds(plan).value_or(NAN) /
         (plan.round_seconds.value_or(NAN) * static_cast<double>(plan.sites.size()));
}

}  // namespace farstep::heterogeneity
