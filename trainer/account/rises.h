// The validation losses of a run that have risen far. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "trainer/account/run_report.h"

namespace farstep {

// Returns them in order, each once, though every member has recorded it.
std::vector<RiseEvent> rises_of(const RunReport& report);

// Returns a line for each.
std::vector<std::string> rise_lines(const RunReport& report);

}  // namespace farstep
