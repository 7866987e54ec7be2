#include "heterogeneity/simulate/network.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "outer_optimizer/codec/make_codec.h"
#include "outer_optimizer/schedule/partition.h"
#include "outer_optimizer/sync_partitions.h"
#include "trainer/base/view.h"
#include "wan/link/link_time.h"

namespace farstep::heterogeneity {

// Of each pair only one way may be known, and of a thousand sites few pairs have figures. So
// figures are looked up from the most specific to the most general, and nothing is stored for all
// pairs.
Network::Network(const Scenario& scenario)
    : sync_(scenario.sync),
      own_ways_(scenario.sites.size()),
      default_way_{scenario.link.rtt_seconds, scenario.link.bandwidth_bits_per_second},
      uplinks_bits_per_second_(scenario.sites.size(), wan::kUnlimitedRate),
      codec_(outer_optimizer::make_codec(scenario.sync.codec)),
      fine_codec_(outer_optimizer::make_codec({.kind = scenario.sync.fine_codec})) {
  std::map<std::string, std::size_t> ids;
  // Sites without a region are in the one of the empty name.
  std::map<std::string, std::size_t> region_ids;
  for (const auto& site : scenario.sites) {
    names_.push_back(site.name);
    trains_.push_back(site.trains);
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
  // A site's uplink is at least as fast as its fastest way; slower ways are limited elsewhere.
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
  return figure(from, to, &Way::bandwidth_bits_per_second).value_or(wan::kUnlimitedRate);
}

// A site enters the second phase when the first is over for it, not for all: the real exchange is a
// pipeline without a barrier.
std::vector<double> Network::phase_ends(Phase phase, std::span<const std::size_t> present,
                                        std::span<const double> start,
                                        std::span<const int64_t> part_bytes) const {
  std::vector<double> ends(start.begin(), start.end());
  std::vector<wan::OutgoingMessage> messages(present.size());
  // All that a site receives shares its downlink, from the first byte on.
  struct Incoming {
    double bytes = 0, first_seconds = wan::kUnlimitedRate;
  };
  std::vector<Incoming> incoming(present.size());
  for (std::size_t i = 0; i < present.size(); ++i) {
    for (std::size_t j = 0; j < present.size(); ++j) {
      // In the reduce-scatter a peer gets its own part of the delta, in the all-gather the sender's
      // part of the mean.
      const bool has_none = phase == Phase::kReduceScatter && !trains_[present[i]];
      const auto bytes =
          j == i || has_none ? 0 : part_bytes[phase == Phase::kReduceScatter ? j : i];
      messages[j] = {.bytes = static_cast<double>(bytes),
                     .bits_per_second = bandwidth_bits_per_second(present[i], present[j])};
    }
    const auto leave = leave_seconds(uplinks_bits_per_second_[present[i]], messages);
    for (std::size_t j = 0; j < present.size(); ++j) {
      if (j == i) continue;
      if (messages[j].bytes == 0) continue;
      const double left = start[i] + leave[j];
      const double delay_seconds = rtt_seconds(present[i], present[j]) / 2;
      // Sending occupies the site itself until its last byte has left.
      ends[i] = std::max(ends[i], left);
      ends[j] = std::max(ends[j], left + delay_seconds);
      incoming[j].bytes += messages[j].bytes;
      incoming[j].first_seconds = std::min(incoming[j].first_seconds, start[i] + delay_seconds);
    }
  }
  for (std::size_t j = 0; j < present.size(); ++j) {
    if (incoming[j].bytes == 0) continue;
    ends[j] = std::max(ends[j],
                       wan::message_seconds(incoming[j].bytes, uplinks_bits_per_second_[present[j]],
                                            incoming[j].first_seconds));
  }
  return ends;
}

SyncCost Network::sync_cost(std::span<const std::size_t> present, int64_t values,
                            bool is_fine) const {
  const auto& codec = is_fine ? *fine_codec_ : *codec_;
  SyncCost cost;
  std::vector<int64_t> part_bytes;
  const auto num_sites = static_cast<int>(present.size());
  View view;
  for (const auto id : present) view.members.push_back(names_[id]);
  for (const auto& part :
       outer_optimizer::cut_by_shares({0, values}, configured_shares(sync_, view))) {
    part_bytes.push_back(codec.encoded_bytes(part.size()));
  }
  const int64_t all_bytes = std::accumulate(part_bytes.begin(), part_bytes.end(), int64_t{0});
  const auto num_training = std::ranges::count_if(present, [&](auto id) { return trains_[id]; });
  // In both phases together a site sends 2 (N-1)/N of the encoded values, for equal parts.
  for (std::size_t i = 0; i < present.size(); ++i) {
    const int64_t own_bytes = part_bytes[i];
    const bool trains = trains_[present[i]];
    cost.sent_bytes.push_back((trains ? all_bytes - own_bytes : 0) + (num_sites - 1) * own_bytes);
    cost.received_bytes.push_back((num_training - (trains ? 1 : 0)) * own_bytes + all_bytes -
                                  own_bytes);
    cost.control_seconds.push_back(
        present[i] == coordinator_ ? 0 : rtt_seconds(present[i], coordinator_) / 2);
  }
  if (sync_.exchange == outer_optimizer::ExchangeKind::kRing) {
    const auto largest = outer_optimizer::equal_part(values, num_sites - 1, num_sites);
    return ring_cost(present, std::move(cost),
                     static_cast<double>(codec.encoded_bytes(largest.size())));
  }
  const auto reduced = phase_ends(Phase::kReduceScatter, present, cost.control_seconds, part_bytes);
  cost.exchange_seconds = phase_ends(Phase::kAllGather, present, reduced, part_bytes);
  for (std::size_t i = 0; i < present.size(); ++i) {
    cost.back_seconds.push_back(cost.exchange_seconds[i] - reduced[i]);
    cost.exchange_seconds[i] -= cost.control_seconds[i];
  }
  return cost;
}

ScatterCost Network::scatter_cost(std::size_t from, std::span<const int64_t> bytes) const {
  std::vector<wan::OutgoingMessage> messages;
  for (std::size_t to = 0; to < bytes.size(); ++to) {
    messages.push_back({.bytes = static_cast<double>(bytes[to]),
                        .bits_per_second = to == from ? wan::kUnlimitedRate
                                                      : bandwidth_bits_per_second(from, to)});
  }
  const auto left = leave_seconds(uplinks_bits_per_second_[from], messages);
  ScatterCost cost;
  for (std::size_t to = 0; to < bytes.size(); ++to) {
    if (bytes[to] == 0) {
      cost.arrival_seconds.push_back(0);
      continue;
    }
    const double delay_seconds = rtt_seconds(from, to) / 2;
    cost.left_seconds = std::max(cost.left_seconds, left[to]);
    // The receiver's line may be slower than the sender's.
    cost.arrival_seconds.push_back(std::max(
        left[to] + delay_seconds,
        wan::message_seconds(messages[to].bytes, uplinks_bits_per_second_[to], delay_seconds)));
  }
  return cost;
}

// Nobody sends its next part before it has the last one, so all go at the pace of the slowest way.
SyncCost Network::ring_cost(std::span<const std::size_t> present, SyncCost cost,
                            double part_bytes) const {
  const auto num_sites = static_cast<int>(present.size());
  double hop_seconds = 0;
  for (std::size_t i = 0; num_sites > 1 && i < present.size(); ++i) {
    const auto from = present[i], to = present[(i + 1) % present.size()];
    hop_seconds =
        std::max(hop_seconds, wan::message_seconds(part_bytes, bandwidth_bits_per_second(from, to),
                                                   rtt_seconds(from, to) / 2));
  }
  // The last Go sets the ring in motion.
  const double begun = *std::ranges::max_element(cost.control_seconds);
  for (const double control_seconds : cost.control_seconds) {
    const double hops_seconds = 2 * (num_sites - 1) * hop_seconds;
    cost.exchange_seconds.push_back(begun - control_seconds + hops_seconds);
    cost.back_seconds.push_back(hops_seconds / 2);
  }
  return cost;
}

}  // namespace farstep::heterogeneity
