// The planning policies: from what is known of the sites to what each has to do.
//
// Pure functions; thread-safe. Every site computes the plan from the same input and gets the same.
//
//   uniform           every site alike: base_steps of base_batch
//   batch_by_tflops   batch in proportion to the mean TFLOPS of a site's devices, the least mean
//                     being base_batch (Shin et al., policy A)
//   batch_by_memory   base_batch doubled as long as the smallest device holds it (policy B)
//   steps_by_tflops   local steps in proportion to the mean TFLOPS (policy C)
//   hybrid            micro-batch, batch and local steps from step times, so that all sites reach
//                     the sync at the same moment
#pragma once

#include <span>
#include <string>

#include "heterogeneity/plan/plan.h"
#include "heterogeneity/plan/site_knowledge.h"
#include "trainer/config/run_config.h"

namespace farstep {

// The plan of a round. `sites` has one element a site of the run, in order of site ids. `source`
// names where `config` comes from, for messages. Throws ConfigError naming the site and what to do
// if the policy lacks a figure, the model does not fit on a device, a micro-batch exceeds its
// batch, or a site has pins under another policy than uniform.
RoundPlan make_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    const std::string& source);

// The same with the sites' predictors at hand, which a planner keeps from round to round.
RoundPlan make_plan(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                    std::span<const StepPredictor> predictors, const std::string& source);

// The work that `plan` gives the sites, with the predictions and, under hybrid, the reasons that
// follow from what is known of them now.
RoundPlan predicted_anew(const PlanConfig& config, std::span<const SiteKnowledge> sites,
                         std::span<const StepPredictor> predictors, RoundPlan plan);

}  // namespace farstep
