// Chooses changes of the sync between two rounds, as `plan.wan_target` and `sync.shares` of a run
// ask for.
//
// All sites have the same input, so they choose the same. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/site_knowledge.h"
#include "heterogeneity/policy/plan_config.h"
#include "outer_optimizer/sync_config.h"

namespace farstep::heterogeneity {

struct SyncChange {
  outer_optimizer::SyncConfig sync;
  std::vector<double> shares;  // of the reduction, by site; empty: as the run's config says
  std::string reason;          // in words
};

// Returns shares in proportion to the uplinks, if `rule` says so, there are at least three sites
// and all uplinks are known; else empty.
std::vector<double> shares_by_uplinks(outer_optimizer::SharesRule rule,
                                      std::span<const SiteKnowledge> sites);

// Returns the change from `now` and `shares_now` for a model of `parameters` values; nullopt if
// nothing changes.
std::optional<SyncChange> change_of_sync(const PlanConfig& config, outer_optimizer::SharesRule rule,
                                         std::span<const SiteKnowledge> sites, int64_t parameters,
                                         const outer_optimizer::SyncConfig& now,
                                         const std::vector<double>& shares_now);

}  // namespace farstep::heterogeneity
