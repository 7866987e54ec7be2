// A plan's forecast as text and as JSON: the output of `farstep plan`.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heterogeneity/plan/forecast.h"
#include "heterogeneity/plan/sync_plan.h"
#include "trainer/config/json_fields.h"

namespace farstep::heterogeneity {

// A part of the run for which a report says the time. At most one is set; without any the report is
// of a day.
struct RunLength {
  std::optional<int64_t> rounds, tokens;
};

// Returns the forecast as one object; what is not known is null. Averaging weights assume that
// every site does the planned work.
Json plan_json(const Forecast& forecast, const RunLength& length = {});

// Returns a table with a line for each site, the figures of the run, the warnings, and one line for
// each site with the reason of its work.
std::string plan_text(const Forecast& forecast, const RunLength& length = {});

// Returns the speed of the run and its sites' shares in one line, for logs; empty if no speed is
// known, or one site is alone.
std::string forecast_line(const Forecast& forecast);

// Returns the choice of how to sync as one object; its members have the names of the run file's
// `sync`.
Json sync_json(const SyncPlan& plan);

}  // namespace farstep::heterogeneity
