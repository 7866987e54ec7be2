#include "outer_optimizer/strategy_kind.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

namespace {

// A new kind adds a row. Eager updates cannot be retuned: their sync has a whole round, so there is
// nothing to choose.
constexpr std::array kStrategies{
    StrategyTraits{.kind = StrategyKind::kLowCommunication, .can_be_retuned = true},
    StrategyTraits{.kind = StrategyKind::kEagerUpdates},
    StrategyTraits{.kind = StrategyKind::kLocalSgd, .can_be_retuned = true},
    StrategyTraits{.kind = StrategyKind::kRingAllReduce,
                   .steps_together = true,
                   .exchange = ExchangeKind::kRing,
                   .other_exchange = ExchangeKind::kDirect},
    StrategyTraits{.kind = StrategyKind::kParameterServer,
                   .steps_together = true,
                   .exchange = ExchangeKind::kParameterServer},
    StrategyTraits{.kind = StrategyKind::kDataParallelMaster,
                   .steps_together = true,
                   .has_master = true,
                   .exchange = ExchangeKind::kParameterServer},
};

}  // namespace

const StrategyTraits& traits_of(StrategyKind kind) {
  const auto row = std::ranges::find(kStrategies, kind, &StrategyTraits::kind);
  FARSTEP_CHECK(row != kStrategies.end(), "strategy {} has no row", name_of(kind));
  return *row;
}

void StrategyConfig::validate(const JsonPath& path) const {
  if (!scatter || traits_of(kind).has_master) return;
  path.member("scatter").fail(fmt::format(
      "is true, and strategy.kind is {}: only with data_parallel_master one site has the "
      "batches of all; remove it, or take that kind",
      name_of(kind)));
}

void complete_exchange(SyncConfig& sync, StrategyKind kind, const Json& document) {
  const auto found = document.find("sync");
  const bool is_given =
      found != document.end() && found->is_object() && found->contains("exchange");
  if (!is_given) sync.exchange = traits_of(kind).exchange;
}

}  // namespace farstep::outer_optimizer
