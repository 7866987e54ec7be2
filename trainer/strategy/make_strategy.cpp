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

// One strategy's functions and properties. A new strategy adds a row to the table.
struct StrategyRow {
  StrategyKind kind;
  std::unique_ptr<Strategy> (*make)(const StrategySettings& settings, const View& view,
                                    StartValues start, const Surroundings& surroundings);
  void (*check)(const StrategySettings& settings, const JsonPath& path);
  StrategyTraits traits;
};

// Eager updates cannot be retuned: their sync has a whole round, so there is nothing to choose.
constexpr std::array kStrategies{
    StrategyRow{
        StrategyKind::kLowCommunication, make<LowCommunication>, accept, {.can_be_retuned = true}},
    StrategyRow{StrategyKind::kEagerUpdates, make<EagerUpdates>, EagerUpdates::check, {}},
    StrategyRow{StrategyKind::kLocalSgd, make_local_sgd, accept, {.can_be_retuned = true}},
    StrategyRow{StrategyKind::kRingAllReduce,
                make_data_parallel<DataParallel::Update::kEverywhere>,
                DataParallel::check,
                {.steps_together = true,
                 .exchange = ExchangeKind::kRing,
                 .other_exchange = ExchangeKind::kDirect}},
    StrategyRow{StrategyKind::kParameterServer,
                make_data_parallel<DataParallel::Update::kEverywhere>,
                DataParallel::check,
                {.steps_together = true, .exchange = ExchangeKind::kParameterServer}},
    StrategyRow{StrategyKind::kDataParallelMaster,
                make_data_parallel<DataParallel::Update::kAtMaster>,
                DataParallel::check,
                {.steps_together = true, .exchange = ExchangeKind::kParameterServer}},
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
  const auto& row = row_of(kind);
  const auto exchange = settings.sync.exchange;
  if (row.traits.steps_together && exchange != row.traits.exchange &&
      exchange != row.traits.other_exchange) {
    path.member("kind").fail(
        fmt::format("{} needs sync.exchange {}, which it has if that is left out; here it is {}",
                    name_of(kind), name_of(row.traits.exchange), name_of(exchange)));
  }
  row.check(settings, path);
}

const StrategyTraits& traits_of(StrategyKind kind) {
  return row_of(kind).traits;
}

}  // namespace farstep
