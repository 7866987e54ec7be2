#include "outer_optimizer/schedule/partition.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/error.h"

namespace farstep {

namespace {

int64_t nearest(std::span<const int64_t> borders, int64_t position) {
  const auto after = std::ranges::lower_bound(borders, position);
  if (after == borders.begin()) return borders.empty() ? position : *after;
  const int64_t before = *std::prev(after);
  return after == borders.end() || position - before <= *after - position ? before : *after;
}

}  // namespace

Range equal_part(int64_t n, int index, int num_parts) {
  FARSTEP_CHECK(n >= 0 && 0 <= index && index < num_parts, "part {} of {} of {} elements", index,
                num_parts, n);
  return {n * index / num_parts, n * (index + 1) / num_parts};
}

std::vector<Range> cut_by_shares(const Range& range, std::span<const double> shares) {
  const double largest = shares.empty() ? 0 : std::ranges::max(shares);
  FARSTEP_CHECK(largest > 0 && std::ranges::min(shares) >= 0, "{} shares, {} the largest",
                shares.size(), largest);
  // In units of the largest, so that equal ones add up without rounding.
  double total = 0, before = 0;
  for (const double share : shares) total += share / largest;
  std::vector<Range> parts;
  int64_t begin = range.begin;
  for (const double share : shares) {
    before += share / largest;
    const double end = std::floor(static_cast<double>(range.size()) * before / total);
    parts.push_back({begin, std::min(range.end, range.begin + static_cast<int64_t>(end))});
    begin = parts.back().end;
  }
  return parts;
}

std::vector<Range> cut_at_borders(const Range& range, std::span<const double> shares,
                                  std::span<const int64_t> borders) {
  auto parts = cut_by_shares(range, shares);
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    int64_t border = parts[i].end;
    if (border != range.begin && border != range.end) {
      border = std::clamp(nearest(borders, border), parts[i].begin, range.end);
    }
    parts[i].end = parts[i + 1].begin = border;
  }
  return parts;
}

}  // namespace farstep
