// The planning policies: they compute each site's work from the knowledge of the sites.
//
// Pure functions; thread-safe. Every site computes the same plan from the same input.
//
//   uniform           equal work for all sites: base_steps of base_batch
//   batch_by_tflops   batch in proportion to the mean TFLOPS of a site's devices; the least mean
//                     has base_batch (Shin et al., policy A)
//   batch_by_memory   base_batch doubled as long as it fits in the smallest device (policy B)
//   steps_by_tflops   local steps in proportion to the mean TFLOPS (policy C)
//   hybrid            micro-batch, batch and local steps from step times, so that all sites reach
//                     the sync at the same moment
#pragma once

#include <span>
#include <vector>

#include "heterogeneity/knowledge/site_knowledge.h"
#include "heterogeneity/policy/plan.h"
#include "heterogeneity/policy/plan_config.h"

namespace farstep::heterogeneity {

// Returns the run's sites with their pins, in their order, and no other knowledge.
std::vector<SiteKnowledge> sites_of(std::span<const RunSite> sites);

// Returns the plan of a round for `sites`, in their order.
// Throws ConfigError naming the JSON path, the site and the remedy; in_file() adds the file.
// Reasons: the policy lacks a figure; the model does not fit on a device; a micro-batch exceeds its
// batch; a site has pins under another policy than uniform.
RoundPlan make_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites);

// The same, with the sites' predictors, which a planner keeps from round to round.
RoundPlan make_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    std::span<const StepPredictor> predictors);

// Returns `plan` with its work unchanged, but with predictions from the present knowledge of the
// sites and, under hybrid, with new reasons.
RoundPlan predicted_anew(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                         std::span<const StepPredictor> predictors, RoundPlan plan);

// Returns whether the policy plans by step times, so that a round's figures change the next plan.
bool learns(Policy policy);

}  // namespace farstep::heterogeneity
