// The timeline of a run: one lane for each site shows when it trained, when it was idle, and why.
//
// A lane is divided into columns about a pixel wide. Each is filled in proportion to the site's
// activities in that time, so that a run of any length gives a true and small drawing. A pure
// function; thread-safe.
#pragma once

#include <string>

#include "trainer/report/report.h"

namespace farstep {

// Returns the drawing as an <svg> element. Classes of its fills are "compute" and the names of the
// causes.
std::string timeline_chart(const RunReport& report);

}  // namespace farstep
