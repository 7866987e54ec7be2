// What crosses the network in a sync, and how (`sync` of a run file).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outer_optimizer/codec/codec_config.h"
#include "outer_optimizer/exchange_kind.h"
#include "outer_optimizer/schedule/outliers.h"
#include "outer_optimizer/schedule/partition.h"
#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep::outer_optimizer {

enum class SharesRule { kEqual, kBandwidth };
inline std::span<const std::string_view> enum_names(SharesRule) {
  static constexpr std::array<std::string_view, 2> kNames{"equal", "bandwidth"};
  return kNames;
}

struct SyncConfig {
  static constexpr std::array<FormerField, 1> kFormerFields{
      {{.name = "eager", .now = "strategy.kind: eager_updates"}}};

  int64_t fragments = 1;
  int64_t delay_steps = 0;
  double alpha = 0;
  ExchangeKind exchange = ExchangeKind::kDirect;
  PartitionRule partition = PartitionRule::kBytes;
  SharesRule shares = SharesRule::kEqual;
  std::vector<std::string> servers;
  CodecConfig codec;
  int64_t fine_rounds = 0;
  CodecKind fine_codec = CodecKind::kInt8;
  std::optional<int64_t> lanes;
  OutlierRule outliers = OutlierRule::kLeaveOut;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("fragments", fragments,
          "equal parts of the model that are synced one after the other, spread over the round",
          in_range(1, 1024));
    visit("delay_steps", delay_steps,
          "inner steps (of a site that takes plan.base_steps of them) between sending a delta and "
          "applying the mean, in which training hides the exchange",
          at_least(0));
    visit("alpha", alpha,
          "share of its own values that a site keeps when it applies a delayed mean; 1: the sites "
          "train apart, and theta_global follows them",
          in_range(0, 1));
    visit("exchange", exchange,
          "who adds up the deltas: direct, all sites, each a part; parameter_server, the servers; "
          "ring, a ring all-reduce in fp32: Gloo's own, or with keys one over the encrypted links");
    visit("partition", partition,
          "how the model is cut among those who add: in parts of equal bytes, or at tensors");
    visit("shares", shares,
          "how much of the model each site adds up: equal, or as much as its uplink allows");
    visit("servers", servers, "the sites that serve; empty is the first one");
    visit("codec", codec, "how values travel");
    visit("fine_rounds", fine_rounds, "last rounds of the run in which they travel by fine_codec",
          at_least(0));
    visit("fine_codec", fine_codec, "how values travel in the fine rounds");
    visit(
        "lanes", lanes,
        "connections between two sites; null: as plan.wan_target needs, else 2, or 1 of more than "
        "four sites",
        in_range(1, 64));
    visit("outliers", outliers,
          "a delta out of all proportion, as a fault of a site's memory makes it. leave_out: the "
          "others go on without it, and its site begins anew from theta_global; warn: it counts, "
          "and the log says so; off: nobody looks. Strategies that sum gradients have no deltas");
  }

  // Returns whether a round is fine, in a run of `rounds`.
  bool is_fine(int64_t round, int64_t rounds) const { return round > rounds - fine_rounds; }

  // Throws ConfigError, with the member under `path`, if members do not go together or the
  // fragments do not fit into a round of `base_steps`.
  void validate(const JsonPath& path, int64_t base_steps) const;
  // Throws ConfigError, with the path `steps`, if the fragments do not fit into a round of a site
  // with these local steps.
  void require_room(const JsonPath& steps, int64_t local_steps, int64_t base_steps) const;
};

}  // namespace farstep::outer_optimizer
