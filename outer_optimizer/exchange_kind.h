// The kinds of exchange (`sync.exchange` of a run file), and what each can do. trainer/peers makes
// them.
//
// Values and pure functions; thread-safe.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace farstep::outer_optimizer {

enum class ExchangeKind { kDirect, kParameterServer, kRing };
inline std::span<const std::string_view> enum_names(ExchangeKind) {
  static constexpr std::array<std::string_view, 3> kNames{"direct", "parameter_server", "ring"};
  return kNames;
}

// What becomes of `sync.servers`.
enum class ServersUse { kNone, kIgnored, kAddUp };

// The properties of one kind.
struct ExchangeTraits {
  ExchangeKind kind;
  ServersUse servers;   // kNone: naming some is an error; kAddUp: only they add up the deltas
  bool takes_codecs;    // otherwise values travel in fp32
  bool takes_shares;    // the sites may add up unequal parts, by `sync.shares`
  bool can_be_retuned;  // the planner may change codec, fragments and delay
  bool over_links;      // over the links of the view, not over connections of its own
  bool keeps_received;  // what has come of the deltas is not sent again when a sync is repeated
};

const ExchangeTraits& traits_of(ExchangeKind kind);

}  // namespace farstep::outer_optimizer
