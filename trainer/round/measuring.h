// The measuring sync of the first round, for sites without profiles. After a few steps the sites
// exchange their speeds, and plan the rest of the round.
#pragma once

#include <stop_token>

#include "trainer/round/round_record.h"
#include "trainer/round/run.h"

namespace farstep {

// Returns whether the measuring steps are done, so that the rest of the round must be planned.
bool is_measured(const Run& run);

// Meets the other sites at the measuring sync, plans the rest of the round and begins it. Returns
// false if a stop was requested before all sites had arrived.
bool plan_rest_of_round(Run& run, RoundRecord& record, const std::stop_token& stop);

}  // namespace farstep
