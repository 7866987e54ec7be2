#include "outer_optimizer/sync_partitions.h"

#include <algorithm>

namespace farstep::outer_optimizer {

std::vector<double> configured_shares(const SyncConfig& sync, const View& view) {
  if (traits_of(sync.exchange).servers != ServersUse::kAddUp) {
    return std::vector<double>(view.size(), 1);
  }
  std::vector<double> shares;
  for (const auto& member : view.members) {
    shares.push_back(std::ranges::count(sync.servers, member) > 0 ? 1 : 0);
  }
  if (std::ranges::count(shares, 1) == 0) shares.front() = 1;
  return shares;
}

std::vector<Range> cut(const Range& range, PartitionRule rule, std::span<const double> shares,
                       std::span<const int64_t> borders) {
  return rule == PartitionRule::kBytes ? cut_by_shares(range, shares)
                                       : cut_at_borders(range, shares, borders);
}

}  // namespace farstep::outer_optimizer
