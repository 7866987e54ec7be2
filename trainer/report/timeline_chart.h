// The timeline of a run: a lane a site that shows when it trained, when it stood idle and why.
//
// A lane is cut into columns about a pixel wide; each is filled in proportion to what the site did
// in that time, so that a run of any length is drawn truthfully and small. Pure; thread-safe.
#pragma once

#include <string>

#include "trainer/report/report.h"

namespace farstep {

// The drawing as an <svg> element. Classes of its fills: "compute" and the names of the causes.
std::string timeline_chart(const RunReport& report);

}  // namespace farstep
