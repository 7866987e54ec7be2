// The policy `hybrid`: chooses micro-batch, batch and local steps so that all sites reach the sync
// at the same moment. policy.h lists all policies.
//
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/site_knowledge.h"
#include "heterogeneity/policy/plan.h"
#include "heterogeneity/policy/plan_config.h"

namespace farstep::heterogeneity {

// Returns batch, micro-batch and local steps of the sites. The batch is base_batch, doubled within
// critical_batch and memory as long as that raises the tokens a second. A site of unknown speed
// gets the base work. Throws ConfigError if all are unknown.
//
// With equal_steps every site takes base_steps. The sites together have base_batch sequences a site
// in each step, divided so that the slowest site's step is shortest.
RoundPlan hybrid_work(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                      std::span<const StepPredictor> predictors);

// Sets the predictions and the reasons of the plan's work.
void explain_hybrid(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    std::span<const StepPredictor> predictors, RoundPlan& plan);

}  // namespace farstep::heterogeneity
