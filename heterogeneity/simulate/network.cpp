#include "heterogeneity/simulate/network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "outer_optimizer/schedule/partition.h"

namespace farstep {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr double kBitsPerByte = 8;

}  // namespace

Network::Network(const Scenario& scenario)
    : own_ways_(scenario.sites.size()),
      default_way_{scenario.link.rtt_seconds, scenario.link.bandwidth_bits_per_second},
      uplinks_bits_per_second_(scenario.sites.size(), kNoLimit),
      parameters_(scenario.parameters.value_or(0)),
      bytes_per_parameter_(scenario.bytes_per_parameter) {
  std::map<std::string, std::size_t> ids;
  std::map<std::string, std::size_t> region_ids;
  for (const auto& site : scenario.sites) {
    ids.emplace(site.name, ids.size());
    regions_.push_back(region_ids.emplace(site.region, region_ids.size()).first->second);
  }
  coordinator_ = ids.at(scenario.coordinator);
  region_ways_.assign(region_ids.size(), std::vector<Way>(region_ids.size()));
  for (const auto& link : scenario.regions) {
    const Way way{link.rtt_seconds, link.bandwidth_bits_per_second};
    region_ways_[region_ids.at(link.from)][region_ids.at(link.to)] = way;
    region_ways_[region_ids.at(link.to)][region_ids.at(link.from)] = way;
  }
  for (std::size_t site = 0; site < scenario.sites.size(); ++site) {
    for (const auto& link : scenario.sites[site].profile->links) {
      own_ways_[site][ids.at(link.peer)] = {link.rtt_seconds, link.bandwidth_bits_per_second};
    }
  }
  for (std::size_t site = 0; site < scenario.sites.size(); ++site) {
    double fastest = 0;
    for (std::size_t peer = 0; peer < scenario.sites.size(); ++peer) {
      if (peer == site) continue;
      fastest = std::max(fastest, figure(site, peer, &Way::bandwidth_bits_per_second).value_or(0));
    }
    if (fastest > 0) uplinks_bits_per_second_[site] = fastest;
  }
}

std::optional<double> Network::figure(std::size_t from, std::size_t to,
                                      std::optional<double> Way::*member) const {
  const auto& own = own_ways_[from];
  if (const auto way = own.find(to); way != own.end() && way->second.*member) {
    return way->second.*member;
  }
  const auto& back = own_ways_[to];
  if (const auto way = back.find(from); way != back.end() && way->second.*member) {
    return way->second.*member;
  }
  const auto& between = region_ways_[regions_[from]][regions_[to]].*member;
  return between ? between : default_way_.*member;
}

double Network::rtt_seconds(std::size_t from, std::size_t to) const {
  return figure(from, to, &Way::rtt_seconds).value_or(0);
}

double Network::bandwidth_bits_per_second(std::size_t from, std::size_t to) const {
  return figure(from, to, &Way::bandwidth_bits_per_second).value_or(kNoLimit);
}

std::vector<double> Network::phase_ends(Phase phase, std::span<const std::size_t> present,
                                        std::span<const double> start,
                                        std::span<const double> part_bytes) const {
  const double all_bytes = std::accumulate(part_bytes.begin(), part_bytes.end(), 0.0);
  const auto num_peers = static_cast<double>(present.size() - 1);
  std::vector<double> ends(start.begin(), start.end());
  for (std::size_t i = 0; i < present.size(); ++i) {
    const bool reduces = phase == Phase::kReduceScatter;
    const double sent_bytes = reduces ? all_bytes - part_bytes[i] : num_peers * part_bytes[i];
    const double uplink_seconds = kBitsPerByte * sent_bytes / uplinks_bits_per_second_[present[i]];
    for (std::size_t j = 0; j < present.size(); ++j) {
      if (j == i) continue;
      const double way_seconds = kBitsPerByte * (reduces ? part_bytes[j] : part_bytes[i]) /
                                 bandwidth_bits_per_second(present[i], present[j]);
      const double left = start[i] + std::max(way_seconds, uplink_seconds);
      ends[i] = std::max(ends[i], left);
      ends[j] = std::max(ends[j], left + rtt_seconds(present[i], present[j]) / 2);
    }
  }
  return ends;
}

SyncCost Network::sync_cost(std::span<const std::size_t> present) const {
  SyncCost cost;
  std::vector<double> part_bytes;
  const double all_bytes = bytes_per_parameter_ * static_cast<double>(parameters_);
  const auto num_sites = static_cast<int>(present.size());
  for (int i = 0; i < num_sites; ++i) {
    const auto site = present[static_cast<std::size_t>(i)];
    const auto part = equal_part(parameters_, i, num_sites).size();
    part_bytes.push_back(bytes_per_parameter_ * static_cast<double>(part));
    const double others_bytes = all_bytes - part_bytes.back() + (num_sites - 1) * part_bytes.back();
    cost.sent_bytes.push_back(std::llround(others_bytes));
    cost.received_bytes.push_back(cost.sent_bytes.back());
    cost.control_seconds.push_back(site == coordinator_ ? 0 : rtt_seconds(site, coordinator_) / 2);
  }
  const auto reduced = phase_ends(Phase::kReduceScatter, present, cost.control_seconds, part_bytes);
  cost.exchange_seconds = phase_ends(Phase::kAllGather, present, reduced, part_bytes);
  for (std::size_t i = 0; i < present.size(); ++i) {
    cost.exchange_seconds[i] -= cost.control_seconds[i];
  }
  return cost;
}

}  // namespace farstep
