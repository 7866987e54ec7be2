#include "outer_optimizer/schedule/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

namespace {

int64_t nearest(std::span<const int64_t> borders, int64_t position) {
  const auto after = std::ranges::lower_bound(borders, position);
  if (after == borders.begin()) return borders.empty() ? position : *after;
  const int64_t before = *std::prev(after);
  return after == borders.end() || position - before <= *after - position ? before : *after;
}

}  // namespace

std::vector<Range> Partition::ranges() const {
  auto all = received;
  all.insert(all.end(), awaited.begin(), awaited.end());
  return all;
}

int64_t Partition::size() const {
  int64_t size = 0;
  for (const auto& range : ranges()) size += range.size();
  return size;
}

std::vector<Partition> partitions_of(const std::vector<Range>& ranges) {
  std::vector<Partition> partitions;
  for (const auto& range : ranges) partitions.push_back({.received = {}, .awaited = {range}});
  return partitions;
}

Range equal_part(int64_t n, int index, int num_parts) {
  FARSTEP_CHECK(n >= 0 && 0 <= index && index < num_parts, "part {} of {} of {} elements", index,
                num_parts, n);
  return {n * index / num_parts, n * (index + 1) / num_parts};
}

std::vector<Range> cut_by_shares(const Range& range, std::span<const double> shares,
                                 int64_t block) {
  const double largest = shares.empty() ? 0 : std::ranges::max(shares);
  FARSTEP_CHECK(largest > 0 && std::ranges::min(shares) >= 0, "{} shares, {} the largest",
                shares.size(), largest);
  // In units of the largest share, so that equal shares add up without rounding.
  double total = 0, before = 0;
  for (const double share : shares) total += share / largest;
  std::vector<Range> parts;
  int64_t begin = range.begin;
  for (const double share : shares) {
    before += share / largest;
    // The last part ends at the end of the range, however the products are rounded: both sums add
    // the same numbers in one order, so they end with the same bits.
    int64_t size = range.size();
    if (before != total) {
      size = static_cast<int64_t>(static_cast<double>(range.size()) * before / total);
      size = std::min(range.size(), (size + block / 2) / block * block);
    }
    parts.push_back({begin, range.begin + size});
    begin = parts.back().end;
  }
  return parts;
}

std::string fault_of_shares(std::span<const double> shares, std::size_t num_sites) {
  if (shares.size() != num_sites) {
    return fmt::format("{} shares of {} members", shares.size(), num_sites);
  }
  if (shares.empty()) return "no shares";
  const auto [least, most] = std::ranges::minmax(shares);
  if (least < 0) return fmt::format("a share of {}; none may be below 0", least);
  return most > 0 ? "" : "shares that are all 0";
}

// The clamp keeps the parts in order when two cuts move to the same border.
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

// A site with share f of the model sends 1 - f to the owners of the rest. Its mean, f, goes to N -
// 1 sites. That is 1 + (N - 2) f in all. So a site that is to be busy for T seconds has f = (T rate
// - 1) / (N - 2). The shares are divided by their sum in the end, so N - 2 cancels.
std::vector<double> bandwidth_shares(std::span<const double> uplink_bits_per_second) {
  const auto& rates = uplink_bits_per_second;
  FARSTEP_CHECK(
      !rates.empty() &&
          std::ranges::all_of(rates, [](double rate) { return rate > 0 && std::isfinite(rate); }),
      "the uplinks' rates are not all above 0");
  const auto num_sites = static_cast<double>(rates.size());
  std::vector<double> shares(rates.size(), 1 / num_sites);
  // With two sites each sends one model for any shares.
  if (rates.size() <= 2) return shares;
  // The exchange's seconds for a model of one bit: the slowest uplink must carry the model once;
  // all uplinks together carry it 2 (N - 1) times.
  const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
  const double seconds = std::max(1 / std::ranges::min(rates), 2 * (num_sites - 1) / sum);
  double total = 0;
  for (std::size_t site = 0; site < rates.size(); ++site) {
    // `seconds` is long enough for every uplink; the limit is for rounding.
    shares[site] = std::max(0.0, seconds * rates[site] - 1);
    total += shares[site];
  }
  for (auto& share : shares) share /= total;
  return shares;
}

}  // namespace farstep::outer_optimizer
