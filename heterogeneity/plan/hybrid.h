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

// Batch, micro-batch and local steps of the sites. The batch is base_batch, or doubled within
// critical_batch and memory as long as that brings tokens a second. A site of which nothing is
// known gets the base work. Throws ConfigError if nothing is known of any.
RoundPlan hybrid_work(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                      std::span<const StepPredictor> predictors, const std::string& source);

// Fills in the predictions of the plan's work and the reasons for it.
void explain_hybrid(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    std::span<const StepPredictor> predictors, RoundPlan& plan);

}  // namespace farstep
