// The policy `hybrid`: micro-batch, batch and local steps with which all sites reach the sync at
// the same moment. policy.h puts it in a row with the others.
//
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heterogeneity/plan/plan.h"
#include "heterogeneity/plan/site_knowledge.h"
#include "trainer/config/run_config.h"

namespace farstep {

// By how much a round may be longer or shorter than the slowest site's base steps, where that
// leaves less idle time.
inline constexpr double kRoundTolerance = 0.05;

// What a site's time in a round is made of.
struct Pace {
  double overhead_seconds = 0;
  double step_seconds = 0;  // above 0
};

// Local steps of each site, at least 1, with which the sites idle for the least share of the round,
// which lasts `target_seconds` give or take kRoundTolerance, or as long as the slowest site needs
// for one step.
std::vector<int64_t> steps_to_meet(std::span<const Pace> paces, double target_seconds);

// Batch, micro-batch and local steps of the sites. The batch is base_batch, or doubled within
// critical_batch and memory as long as that brings tokens a second. A site of which nothing is
// known gets the base work. Throws ConfigError if nothing is known of any.
RoundPlan hybrid_work(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                      const std::string& source);

// Fills in the predictions of the plan's work and the reasons for it.
void explain_hybrid(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    RoundPlan& plan);

}  // namespace farstep
