#include "trainer/strategy/make_strategy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/strategy/data_parallel.h"
#include "trainer/strategy/eager_updates.h"
#include "trainer/strategy/low_communication.h"

namespace farstep {

namespace {

template <typename Kind>
std::unique_ptr<Strategy> make(const StrategySettings& settings, const View& view,
                               StartValues start, const Surroundings& surroundings) {
  return std::make_unique<Kind>(settings, view, std::move(start), surroundings);
}

template <DataParallel::Update kUpdate>
std::unique_ptr<Strategy> make_data_parallel(const StrategySettings& settings, const View& view,
                                             StartValues start, const Surroundings& surroundings) {
  return std::make_unique<DataParallel>(kUpdate, settings, view, std::move(start), surroundings);
}

// theta_global minus the mean delta is the mean of the models. So this is the outer step of rate 1
// without momentum (Stich 2019).
std::unique_ptr<Strategy> make_local_sgd(const StrategySettings& settings, const View& view,
                                         StartValues start, const Surroundings& surroundings) {
  auto plain = settings;
  plain.outer.learning_rate = 1;
  plain.outer.momentum = 0;
  return std::make_unique<LowCommunication>(plain, view, std::move(start), surroundings);
}

void accept(const StrategySettings& /*settings*/, const JsonPath& /*path*/) {}

// One strategy's functions. A new strategy adds a row to this table, and one to that of its
// properties (outer_optimizer/strategy_kind.cpp).
struct StrategyRow {
  outer_optimizer::StrategyKind kind;
  std::unique_ptr<Strategy> (*make)(const StrategySettings& settings, const View& view,
                                    StartValues start, const Surroundings& surroundings);
  void (*check)(const StrategySettings& settings, const JsonPath& path);
};

constexpr auto make_everywhere = make_data_parallel<DataParallel::Update::kEverywhere>;
constexpr auto make_at_master = make_data_parallel<DataParallel::Update::kAtMaster>;

constexpr std::array kStrategies{
    StrategyRow{outer_optimizer::StrategyKind::kLowCommunication, make<LowCommunication>, accept},
    StrategyRow{outer_optimizer::StrategyKind::kEagerUpdates, make<EagerUpdates>,
                EagerUpdates::check},
    StrategyRow{outer_optimizer::StrategyKind::kLocalSgd, make_local_sgd, accept},
    StrategyRow{outer_optimizer::StrategyKind::kRingAllReduce, make_everywhere,
                DataParallel::check},
    StrategyRow{outer_optimizer::StrategyKind::kParameterServer, make_everywhere,
                DataParallel::check},
    StrategyRow{outer_optimizer::StrategyKind::kDataParallelMaster, make_at_master,
                DataParallel::check},
};

const StrategyRow& row_of(outer_optimizer::StrategyKind kind) {
  const auto row = std::ranges::find(kStrategies, kind, &StrategyRow::kind);
  FARSTEP_CHECK(row != kStrategies.end(), "strategy {} has no row", name_of(kind));
  return *row;
}

}  // namespace

std::unique_ptr<Strategy> make_strategy(outer_optimizer::StrategyKind kind,
                                        const StrategySettings& settings, const View& view,
                                        StartValues start, const Surroundings& surroundings) {
  return row_of(kind).make(settings, view, std::move(start), surroundings);
}

void check_strategy(outer_optimizer::StrategyKind kind, const StrategySettings& settings,
                    const JsonPath& path) {
  const auto& traits = traits_of(kind);
  const auto exchange = settings.sync.exchange;
  if (traits.steps_together && exchange != traits.exchange && exchange != traits.other_exchange) {
    path.member("kind").fail(
        fmt::format("{} needs sync.exchange {}, which it has if that is left out; here it is {}",
                    name_of(kind), name_of(traits.exchange), name_of(exchange)));
  }
  row_of(kind).check(settings, path);
}

}  // namespace farstep
