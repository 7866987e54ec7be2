// The check that all sites trained by the same plan.
//
// Each site computes the plan for itself, from the same figures. If a site trained otherwise, it
// computed another plan, and the run is wrong from there on. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "wan/protocol/protocol.h"

namespace farstep {

// One member's part of a round's plan.
struct PlannedWork {
  std::string site;
  int64_t batch = 0;
  int64_t local_steps = 0;
  int64_t most_steps = 0;  // the round's data allows no more
  // Steps of the base work that the plan leaves out. They count as missing, so that the site's
  // weight is the share of its base work that it does.
  int64_t left_out_steps = 0;
  bool ends_by_steps = true;  // false: by its deadline, after any number of steps
};

// Throws InternalError if a contribution to the sync that `go` began differs from `planned`: by
// another batch, by more than most_steps steps, or by fewer than `least_steps`. The last applies
// only where rounds end by steps, and not to a site that is leaving, which ends its round early.
// Planned sites may be missing: they were lost since.
// A site that is not planned may have joined since: then it has done no work.
void check_planned(const wan::Go& go, std::span<const PlannedWork> planned,
                   const std::function<int64_t(const PlannedWork&)>& least_steps);

}  // namespace farstep
