// The figures of runs as curves against their rounds, for charts.js (trainer/charts/page) to draw.
// Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>

#include "trainer/account/run_report.h"
#include "trainer/config/json_fields.h"

namespace farstep {

// Return {"unit", "progress", "charts"}. A chart is {"id", "title", "curves"}: loss, accuracy if a
// run has one, learning rate, gradient norm and tokens (or images) a second. A curve is {"name",
// "run", "kind", "is_marked", "points"}: "run" is the place of its run, from 0, "kind" the class of
// its colour, and points are pairs of rounds done and the value, 400 at most, with five digits; of
// more, the means of neighbours. "progress" says for each run how much was done when, at most at
// 401 of its rounds: lists of rounds, what "unit" names, and seconds since its begin.
//
// Of one run: a curve for each site, and the validation, which is marked.
Json curves_of_run(const RunReport& report);
// Of several runs, at least one: a curve for each, by round. The loss is the mean over the tokens
// of all sites; learning rate and gradient norm are means over the steps of a round and then over
// the sites; tokens a second are the sites' sum. The loss has the validation of each run too.
// `names` has a name for each run.
Json curves_of_runs(std::span<const RunReport> reports, std::span<const std::string> names);

// Returns what the counts of at least one run called tokens count: "tokens", "images" or, where the
// runs differ, "tokens or images".
std::string unit_of(std::span<const RunReport> reports);

}  // namespace farstep
