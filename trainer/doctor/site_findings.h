// The checks of trainer/run/site_checks, which `farstep train` makes too before it joins, as
// findings. `farstep check` shows these alone; `farstep doctor` looks at machine and network too.
#pragma once

#include "trainer/doctor/finding.h"
#include "trainer/run/site_checks.h"

namespace farstep {

// Makes one check. One that needs the run, or something else that is not known, is graded later.
Finding site_finding(const SiteCheck& check, CheckedSite& site);

// Makes all checks.
void tell_site_findings(CheckedSite& site, const Tell& tell);

}  // namespace farstep
