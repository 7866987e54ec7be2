// The report as one self-contained HTML page, without scripts or network access, in a light and a
// dark style. A pure function; thread-safe.
#pragma once

#include <string>

#include "trainer/report/report.h"

namespace farstep {

// Returns the page; under a megabyte for a run of any length.
std::string html_report(const RunReport& report);

}  // namespace farstep
