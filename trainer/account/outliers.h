// The deltas of a run that were out of proportion. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "trainer/account/run_report.h"

namespace farstep {

// Returns them in order, each once, though every member has recorded it.
std::vector<OutlierEvent> outliers_of(const RunReport& report);

// Returns a line for each; of many it keeps the newest.
std::vector<std::string> outlier_lines(const RunReport& report);

}  // namespace farstep
