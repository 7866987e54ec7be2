#include "outer_optimizer/sync_partitions.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace farstep::outer_optimizer {

namespace {

// Returns what `ranges` leave of `whole`; both ascend.
std::vector<Range> rest_of(const Range& whole, std::span<const Range> ranges) {
  std::vector<Range> rest;
  int64_t next = whole.begin;
  for (const auto& range : ranges) {
    if (range.begin > next) rest.push_back({next, range.begin});
    next = range.end;
  }
  if (next < whole.end) rest.push_back({next, whole.end});
  return rest;
}

// Returns whether ranges that ascend are parts of `whole` and do not overlap.
bool are_apart(const Range& whole, std::span<const Range> ranges) {
  int64_t next = whole.begin;
  for (const auto& range : ranges) {
    if (range.begin < next || range.size() < 0) return false;
    next = range.end;
  }
  return next <= whole.end;
}

std::vector<Range> ascending(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {},
                    [](const Range& range) { return std::pair(range.begin, range.end); });
  std::erase_if(ranges, [](const Range& range) { return range.size() == 0; });
  return ranges;
}

// Returns the parts of `ranges` within `whole`.
std::vector<Range> within(const Range& whole, std::span<const Range> ranges) {
  std::vector<Range> parts;
  for (const auto& range : ranges) {
    parts.push_back({std::max(whole.begin, range.begin), std::min(whole.end, range.end)});
  }
  std::erase_if(parts, [](const Range& part) { return part.size() <= 0; });
  return parts;
}

// Returns where a member has received all deltas that count.
std::vector<Range> received_of_all(const Holding& holding, std::span<const Arrived> members) {
  const auto has_all = std::ranges::all_of(members, [&](const Arrived& member) {
    return member.delta == 0 || std::ranges::count(holding.deltas, member.delta) > 0;
  });
  return has_all ? ascending(holding.received) : std::vector<Range>();
}

// Returns the partition of a member that keeps the ranges that it had.
Partition kept_partition(const Range& whole, const Holding& holding,
                         std::span<const Arrived> members) {
  Partition partition;
  const auto received = received_of_all(holding, members);
  const bool is_sound = are_apart(whole, received);
  for (const auto& range : ascending(holding.partition)) {
    const auto here = is_sound ? within(range, received) : std::vector<Range>();
    std::ranges::copy(here, std::back_inserter(partition.received));
    std::ranges::copy(rest_of(range, here), std::back_inserter(partition.awaited));
  }
  return partition;
}

// Returns what each member lacks of its share of `size` values; nobody's lack is below 0.
std::vector<double> lacks(int64_t size, std::span<const double> shares,
                          std::span<const Partition> partitions) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<double> lacks;
  for (std::size_t member = 0; member < shares.size(); ++member) {
    const double share = static_cast<double>(size) * shares[member] / sum;
    lacks.push_back(std::max(0.0, share - static_cast<double>(partitions[member].size())));
  }
  return lacks;
}

}  // namespace

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

std::vector<Range> cut(const Range& range, const Cut& how) {
  return how.rule == PartitionRule::kBytes ? cut_by_shares(range, how.shares, how.block)
                                           : cut_at_borders(range, how.shares, how.borders);
}

// A member that returns with the place of a lost one lacks all of its share, so it gets what the
// lost one had.
std::vector<Partition> partitions_of_sync(int64_t size, const Cut& how,
                                          std::span<const Arrived> members) {
  const Range whole{0, size};
  std::vector<Range> kept;
  for (const auto& member : members) {
    if (member.holding == nullptr) continue;
    std::ranges::copy(member.holding->partition, std::back_inserter(kept));
  }
  kept = ascending(std::move(kept));
  if (kept.empty() || !are_apart(whole, kept)) return partitions_of(cut(whole, how));
  std::vector<Partition> partitions;
  for (const auto& member : members) {
    partitions.push_back(
        member.holding == nullptr ? Partition() : kept_partition(whole, *member.holding, members));
  }
  const auto lack = lacks(size, how.shares, partitions);
  Cut of_rest = how;
  if (std::ranges::max(lack) > 0) of_rest.shares = lack;
  for (const auto& range : rest_of(whole, kept)) {
    const auto parts = cut(range, of_rest);
    for (std::size_t place = 0; place < parts.size(); ++place) {
      if (parts[place].size() > 0) partitions[place].awaited.push_back(parts[place]);
    }
  }
  return partitions;
}

}  // namespace farstep::outer_optimizer
