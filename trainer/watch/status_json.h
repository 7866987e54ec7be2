// What the page shows of a run, as JSON. Every figure comes from the RunReport, so it equals that
// of `farstep report`. Pure functions; thread-safe.
#pragma once

#include <span>

#include "trainer/watch/alarms.h"

namespace farstep {

// Returns the state of the run, its sites and links, with the alarms: a few kB for each site.
// `version` counts the changes. `now` is in unix seconds of the coordinator's clock, as all times.
Json status_json(const RunReport& report, std::span<const Alarm> alarms, int64_t version,
                 double now);

// Returns what each site did in the last `seconds` before `now`, or before the end of a run that is
// over; 0 seconds: since its begin. The time is divided into columns of equal length, which begin
// at multiples of it: {"now", "from", "column_seconds", "columns", "kinds", "labels", "rounds",
// "sites"}. A site's "runs" are lists [columns, kind, level, kind, level, ...] of equal neighbours,
// from left to right; levels are of kLaneLevels. What a site does now goes on up to `now`,
// unless an alarm says that it is gone.
Json timeline_json(const RunReport& report, double seconds, double now,
                   std::span<const Alarm> alarms = {});

// Returns the curves of curves_of_run(), the drawing of idle time as a <div> element, and the
// legends' entries: the lines, and what of the causes occurs.
Json charts_json(const RunReport& report);

// Returns the tables of the run's settings, "settings" and "defaults".
Json settings_json(const RunReport& report);

}  // namespace farstep
