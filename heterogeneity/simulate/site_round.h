// A round of a simulated site.
//
// A value; thread-safe as such.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "heterogeneity/policy/plan.h"
#include "heterogeneity/simulate/site_sync.h"
#include "trainer/telemetry/idle.h"

namespace farstep::heterogeneity {

// One site's actions in a round, in their order.
struct SiteRound {
  std::size_t site = 0;      // site id
  SitePlan plan;             // what it had to do
  double start_seconds = 0;  // since the start of the simulation
  double evaluate_seconds = 0, checkpoint_seconds = 0;
  std::vector<double> step_seconds;  // of each inner step
  // The plan until the round was planned again, and the wait for that.
  std::optional<SitePlan> measuring_plan;
  double measuring_wait_seconds = 0;
  std::vector<SiteSync> syncs;  // of each fragment

  int64_t steps() const { return std::ssize(step_seconds); }
  // Returns the times by cause, as the site's events count them.
  TimeUse time() const;
};

}  // namespace farstep::heterogeneity
