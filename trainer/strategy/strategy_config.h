// The strategy of a run (`strategy` of a run file).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "trainer/config/fields.h"

namespace farstep {

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

struct StrategyConfig {
  StrategyKind kind = StrategyKind::kLowCommunication;
  int64_t bucket_bytes = 32 << 20;

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
  }
};

}  // namespace farstep
