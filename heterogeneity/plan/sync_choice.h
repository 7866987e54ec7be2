// What is to change between two rounds in how the sites sync: what `plan.wan_target` and
// `sync.shares` of a run ask for, from what is known of the sites.
//
// All sites know the same and so decide alike. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heterogeneity/plan/site_knowledge.h"
#include "trainer/config/run_config.h"

namespace farstep {

struct SyncChange {
  SyncConfig sync;
  std::vector<double> shares;  // of the reduction, by site; empty: as the run's config says
  std::string reason;          // in words
};

// Shares by the uplinks where `run` asks for them, there are three sites or more, and all uplinks
// are known; else none.
std::vector<double> shares_by_uplinks(const RunConfig& run, std::span<const SiteKnowledge> sites);

// The change from `now`, with shares `shares_now`, of a model of so many parameters; nothing if all
// is to stay as it is.
std::optional<SyncChange> change_of_sync(const RunConfig& run, std::span<const SiteKnowledge> sites,
                                         int64_t parameters, const SyncConfig& now,
                                         const std::vector<double>& shares_now);

}  // namespace farstep
