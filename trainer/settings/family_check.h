// Checks that a run file's model, data and inner step are of one model family.
//
// A pure function; thread-safe.
#pragma once

#include <string>

#include "trainer/settings/run_config.h"

namespace farstep {

// Throws ConfigError with `file` and JSON path if the run sets a member of the other family, a
// member of another net, or one that the family cannot do.
void check_family(const RunConfig& run, const std::string& file);

}  // namespace farstep
