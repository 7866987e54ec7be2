// The strategy of a run (`strategy` of a run file), and what the rest of a run must know of it.
// trainer/strategy makes it.
//
// Values and pure functions; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "outer_optimizer/exchange_kind.h"
#include "outer_optimizer/sync_config.h"
#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep::outer_optimizer {

enum class StrategyKind {
  kLowCommunication,
  kEagerUpdates,
  kLocalSgd,
  kRingAllReduce,
  kParameterServer,
  kDataParallelMaster
};
inline std::span<const std::string_view> enum_names(StrategyKind) {
  static constexpr std::array<std::string_view, 6> kNames{
      "low_communication", "eager_updates",    "local_sgd",
      "ring_all_reduce",   "parameter_server", "data_parallel_master"};
  return kNames;
}

// The properties of one kind.
struct StrategyTraits {
  StrategyKind kind;
  bool can_be_retuned = false;  // codec, fragments and delay may change between two rounds
  // All sites take every step together, with equal state. So they take equal numbers of steps, none
  // can go on without another, and none joins later.
  bool steps_together = false;
  bool has_master = false;  // one site adds up, updates and hands out the model, and may the batch
  ExchangeKind exchange = ExchangeKind::kDirect;  // where the run file leaves it out
  // With steps_together, no exchange but these two.
  std::optional<ExchangeKind> other_exchange = {};
};

const StrategyTraits& traits_of(StrategyKind kind);

struct StrategyConfig {
  StrategyKind kind = StrategyKind::kLowCommunication;
  int64_t bucket_bytes = 32 << 20;
  bool scatter = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit(
        "kind", kind,
        "how the replicas stay together. low_communication: many local steps, then an outer step "
        "on the mean delta, in fragments and hidden behind training if sync says so; "
        "eager_updates: the same, but a round's whole exchange is hidden behind the next round, "
        "and a site counts its own delta at once (needs one fragment, no delay_steps, alpha 0); "
        "local_sgd: many local steps, then the plain mean of the models, as low_communication with "
        "outer.learning_rate 1 and outer.momentum 0. The others take every step together, by the "
        "mean gradient: ring_all_reduce, all sites add up (sync.exchange ring or direct); "
        "parameter_server, the servers add up; data_parallel_master, one site adds up, updates, "
        "and hands out the model");
    visit("bucket_bytes", bucket_bytes,
          "with a mean gradient: bytes of it, in fp32, that travel at once while backward computes "
          "the rest",
          in_range(4, 1e12));
    visit(
        "scatter", scatter,
        "with data_parallel_master: the master alone reads the data, sends every site its batches, "
        "and validates; the other sites' configs need no `data`");
  }

  // Throws ConfigError, with the member under `path`, if members do not go together.
  void validate(const JsonPath& path) const;
};

// Sets sync.exchange to the strategy's if `document`, which has the settings under "sync", leaves
// it out.
void complete_exchange(SyncConfig& sync, StrategyKind kind, const Json& document);

}  // namespace farstep::outer_optimizer
