// A plan as people and scripts read it: what `farstep plan` prints.
//
// Pure functions; thread-safe.
#pragma once

#include <string>

#include "heterogeneity/plan/plan.h"
#include "heterogeneity/plan/sync_plan.h"
#include "trainer/config/json_fields.h"
#include "trainer/config/run_config.h"

namespace farstep {

// The plan as one object; seconds are null where no step time is known. `rule` gives the averaging
// weights, if every site does what is planned.
Json plan_json(Policy policy, AveragingRule rule, const RoundPlan& plan);

// The same as a table with a line a site, and a line a site that says why below it.
std::string plan_text(Policy policy, AveragingRule rule, const RoundPlan& plan);

// How to sync, as one object; its members have the names of the run file's `sync`.
Json sync_json(const SyncPlan& plan);

}  // namespace farstep
