// The report as one self-contained page: no script, nothing from the network, light and dark.
// Pure; thread-safe.
#pragma once

#include <string>

#include "trainer/report/report.h"

namespace farstep {

// The page's HTML; below a megabyte for runs of any length.
std::string html_report(const RunReport& report);

}  // namespace farstep
