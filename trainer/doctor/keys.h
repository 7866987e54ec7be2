// Whether a site's keys are good: readable by their owner alone, valid for a while, and of the run.
#pragma once

#include <optional>

#include "trainer/doctor/finding.h"
#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"

namespace farstep {

// Looks at the folder of network.keys. Expired or revoked keys, and those that others may read, are
// faults. `run` is nullopt if it is not known.
Finding key_finding(const SiteConfig& site, const std::optional<RunConfig>& run);

}  // namespace farstep
