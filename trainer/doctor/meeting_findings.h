// What a meeting of all sites showed of the ways between them, of their clocks and of their data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/doctor/finding.h"
#include "trainer/probe/meet_sites.h"

namespace farstep {

// Returns findings of every peer. `num_parameters`: of the model, for the time of a sync; nullopt:
// not known.
std::vector<Finding> meeting_findings(const Meeting& meeting,
                                      std::optional<int64_t> num_parameters);

// Returns the faults of a meeting that failed: one for each line of the message, as the check of
// the network names every pair that cannot connect.
std::vector<Finding> failed_meeting_findings(const Error& error);

}  // namespace farstep
