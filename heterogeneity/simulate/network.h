// Computes how long the sites' messages take, over links that follow the model of wan/link.
//
// A way from one site to another has a bandwidth and a round trip, of which a message takes half.
// The first known figure counts: the site's own profile, the peer's profile of the opposite way,
// the link of the two regions, the default. A site's uplink is as fast as its fastest known way.
// The messages of a phase share it as in wan/link/link_time.h. A site's downlink is as fast as its
// uplink. Profiles have no losses and no queues, so neither are simulated. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heterogeneity/simulate/scenario.h"
#include "outer_optimizer/codec/codec.h"

namespace farstep::heterogeneity {

// A sync's cost for each of the sites that take part, in their order.
struct SyncCost {
  std::vector<double> control_seconds;   // one message to or from the coordinator
  std::vector<double> exchange_seconds;  // from its own Go until it has the mean
  std::vector<double> back_seconds;      // of these, after its own part was added up
  std::vector<int64_t> sent_bytes, received_bytes;
};

// What a site's messages to all others cost, by site id.
struct ScatterCost {
  double left_seconds = 0;                   // until the last byte has left
  std::vector<double> arrival_seconds = {};  // until a site has its message
};

class Network {
 public:
  // `scenario` must be a result of scenario_from_json().
  explicit Network(const Scenario& scenario);

  // Returns the round trip between two different sites, by site id.
  double rtt_seconds(std::size_t from, std::size_t to) const;
  // Returns the bandwidth from one site to another; infinity means no limit.
  double bandwidth_bits_per_second(std::size_t from, std::size_t to) const;

  // Returns the cost of the scenario's exchange of `values` among `present` (site ids, ascending),
  // in the codec's bytes; that of the fine rounds if `is_fine`.
  //
  // First Go travels from the coordinator to each site. Then, in the reduce-scatter, a site sends
  // every peer that peer's partition of its delta. Then, in the all-gather, it sends the mean of
  // its own partition to every peer. A site enters the second phase when it has sent and received
  // all messages of the first. (A real exchange sends chunks of both phases at the same time, which
  // hides up to one of the two hops.) With servers only they have partitions, and
  // one that does not train sends nothing in the first phase. In a ring each of N parts makes
  // 2 (N - 1) hops, all sites sending at once, as fast as the slowest way of the ring.
  SyncCost sync_cost(std::span<const std::size_t> present, int64_t values,
                     bool is_fine = false) const;

  // Returns the cost of messages from one site to all, which share its uplink; `bytes` by site id.
  ScatterCost scatter_cost(std::size_t from, std::span<const int64_t> bytes) const;

 private:
  struct Way {
    std::optional<double> rtt_seconds, bandwidth_bits_per_second;
  };
  enum class Phase { kReduceScatter, kAllGather };

  // Returns the figure from the most specific description of the way that has it.
  std::optional<double> figure(std::size_t from, std::size_t to,
                               std::optional<double> Way::*member) const;
  // Returns when each of `present` ends the phase that it enters at `start`; `part_bytes` are the
  // sizes of their partitions.
  std::vector<double> phase_ends(Phase phase, std::span<const std::size_t> present,
                                 std::span<const double> start,
                                 std::span<const int64_t> part_bytes) const;

  SyncCost ring_cost(std::span<const std::size_t> present, SyncCost cost, double part_bytes) const;

  const outer_optimizer::SyncConfig sync_;
  std::vector<std::string> names_;                    // by site id
  std::vector<bool> trains_;                          // by site id
  std::vector<std::map<std::size_t, Way>> own_ways_;  // by site id, then by peer's
  std::vector<std::size_t> regions_;                  // index of a site's region
  std::vector<std::vector<Way>> region_ways_;         // by the regions' indices
  Way default_way_;
  std::vector<double> uplinks_bits_per_second_;
  std::size_t coordinator_ = 0;
  std::unique_ptr<const outer_optimizer::Codec> codec_, fine_codec_;
};

}  // namespace farstep::heterogeneity
