#include "heterogeneity/plan/sync_choice.h"

#include <fmt/ranges.h>

#include "heterogeneity/plan/sync_plan.h"
#include "outer_optimizer/schedule/partition.h"

namespace farstep::heterogeneity {

std::vector<double> shares_by_uplinks(outer_optimizer::SharesRule rule,
                                      std::span<const SiteKnowledge> sites) {
  // With two sites the uplinks carry the same bytes for all shares.
  if (rule != outer_optimizer::SharesRule::kBandwidth || sites.size() < 3) return {};
  std::vector<double> uplinks;
  for (const auto& site : sites) {
    const auto uplink = uplink_bits_per_second(site);
    if (!uplink) return {};
    uplinks.push_back(*uplink);
  }
  return outer_optimizer::bandwidth_shares(uplinks);
}

std::optional<SyncChange> change_of_sync(const PlanConfig& config, outer_optimizer::SharesRule rule,
                                         std::span<const SiteKnowledge> sites, int64_t parameters,
                                         const outer_optimizer::SyncConfig& now,
                                         const std::vector<double>& shares_now) {
  SyncChange change{.sync = now, .shares = shares_by_uplinks(rule, sites), .reason = {}};
  std::vector<std::string> reasons;
  // Without the figures of all sites nothing is changed: half-known links would give a choice that
  // the next round undoes.
  const auto facts = config.wan_target ? sync_facts(sites, config, parameters) : std::nullopt;
  if (facts) {
    if (const auto plan = better_sync(*facts, *config.wan_target, now)) {
      change.sync = changed_to(now, *plan);
      reasons.push_back(plan->reason);
    }
  }
  // Equal bit by bit while no uplink changes: learned figures do not creep (planner.cpp).
  if (change.shares != shares_now) {
    reasons.push_back(fmt::format("the sites add up {:.3f} of the model, by their uplinks' speeds",
                                  fmt::join(change.shares, ", ")));
  }
  if (reasons.empty()) return std::nullopt;
  change.reason = fmt::format("{}", fmt::join(reasons, "; "));
  return change;
}

}  // namespace farstep::heterogeneity
