#include "trainer/strategy/make_strategy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/strategy/eager_updates.h"
#include "trainer/strategy/low_communication.h"

namespace farstep {

namespace {

template <typename Kind>
std::unique_ptr<Strategy> make(const StrategySettings& settings, const View& view,
                               StartValues start, const Surroundings& surroundings) {
  return std::make_unique<Kind>(settings, view, std::move(start), surroundings);
}

// One strategy's functions. A new strategy adds a row to the table. Eager updates cannot be
// retuned: their sync has a whole round, so there is nothing to choose.
struct StrategyRow {
  StrategyKind kind;
  std::unique_ptr<Strategy> (*make)(const StrategySettings& settings, const View& view,
                                    StartValues start, const Surroundings& surroundings);
  void (*check)(const StrategySettings& settings, const JsonPath& path);
  bool can_be_retuned;
};

constexpr std::array kStrategies{
    StrategyRow{StrategyKind::kLowCommunication, make<LowCommunication>,
                [](const StrategySettings&, const JsonPath&) {}, true},
    StrategyRow{StrategyKind::kEagerUpdates, make<EagerUpdates>, EagerUpdates::check, false},
};

const StrategyRow& row_of(StrategyKind kind) {
  const auto row = std::ranges::find(kStrategies, kind, &StrategyRow::kind);
  FARSTEP_CHECK(row != kStrategies.end(), "strategy {} has no row", name_of(kind));
  return *row;
}

}  // namespace

std::unique_ptr<Strategy> make_strategy(StrategyKind kind, const StrategySettings& settings,
                                        const View& view, StartValues start,
                                        const Surroundings& surroundings) {
  return row_of(kind).make(settings, view, std::move(start), surroundings);
}

void check_strategy(StrategyKind kind, const StrategySettings& settings, const JsonPath& path) {
  row_of(kind).check(settings, path);
}

bool can_be_retuned(StrategyKind kind) {
  return row_of(kind).can_be_retuned;
}

}  // namespace farstep
