// How long the sites' messages take: the model of the links between them.
//
// A way from one site to another has a round trip, of which a message pays half, and a bandwidth.
// Both are what the site's own profile says, else what the peer's profile says of the way back,
// else those of the two regions, else the default. A site's uplink is as fast as its fastest known
// way; the transfers of a phase share it: each lasts as long as its own way needs for it, or as the
// uplink needs for all of them, whichever is more. What arrives is not limited beyond that.
// Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "heterogeneity/simulate/scenario.h"

namespace farstep {

// What a sync costs each of the sites that take part, in their order.
struct SyncCost {
  std::vector<double> control_seconds;   // a message to or from the coordinator
  std::vector<double> exchange_seconds;  // from its own Go until it has the mean
  std::vector<int64_t> sent_bytes, received_bytes;
};

class Network {
 public:
  // `scenario` as scenario_from_json() returns it.
  explicit Network(const Scenario& scenario);

  // Round trip between two different sites, by site id.
  double rtt_seconds(std::size_t from, std::size_t to) const;
  // From one site to another; infinity is no limit.
  double bandwidth_bits_per_second(std::size_t from, std::size_t to) const;

  // The direct exchange among `present` (site ids, ascending): Go travels from the coordinator to
  // each site; then reduce-scatter: a site sends every peer that peer's partition of its delta;
  // then all-gather: it sends the mean of its own partition to every peer. A site enters the second
  // phase when all that it had to send in the first has left it and all for it has arrived.
  SyncCost sync_cost(std::span<const std::size_t> present) const;

 private:
  struct Way {
    std::optional<double> rtt_seconds, bandwidth_bits_per_second;
  };
  enum class Phase { kReduceScatter, kAllGather };

  // The figure of the nearest description of the way that has it.
  std::optional<double> figure(std::size_t from, std::size_t to,
                               std::optional<double> Way::*member) const;
  // When each of `present` is through the phase that it enters at `start`; `part_bytes` are the
  // sizes of their partitions.
  std::vector<double> phase_ends(Phase phase, std::span<const std::size_t> present,
                                 std::span<const double> start,
                                 std::span<const double> part_bytes) const;

  std::vector<std::map<std::size_t, Way>> own_ways_;  // by site id, then by peer's
  std::vector<std::size_t> regions_;                  // index of a site's region
  std::vector<std::vector<Way>> region_ways_;         // by the regions' indices
  Way default_way_;
  std::vector<double> uplinks_bits_per_second_;
  std::size_t coordinator_ = 0;
  int64_t parameters_ = 0;
  double bytes_per_parameter_ = 0;
};

}  // namespace farstep
