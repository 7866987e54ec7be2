// A plan as text and as JSON: the output of `farstep plan`.
//
// Pure functions; thread-safe.
#pragma once

#include <string>

#include "heterogeneity/plan/sync_plan.h"
#include "heterogeneity/policy/plan.h"
#include "heterogeneity/policy/plan_config.h"
#include "outer_optimizer/schedule/averaging.h"
#include "trainer/config/json_fields.h"

namespace farstep::heterogeneity {

// Returns the plan as one object; seconds are null where no step time is known. `rule` gives the
// averaging weights, assuming that every site does the planned work.
Json plan_json(Policy policy, outer_optimizer::AveragingRule rule, const RoundPlan& plan);

// Returns a table with a line for each site, followed by one line for each site with the reason.
std::string plan_text(Policy policy, outer_optimizer::AveragingRule rule, const RoundPlan& plan);

// Returns the choice of how to sync as one object; its members have the names of the run file's
// `sync`.
Json sync_json(const SyncPlan& plan);

}  // namespace farstep::heterogeneity
