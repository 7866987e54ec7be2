// Makes the strategy that a run's config names, and checks the settings that the strategy accepts.
#pragma once

#include <memory>
#include <optional>

#include "trainer/base/view.h"
#include "trainer/config/json_fields.h"
#include "trainer/strategy/outer_sync/strategy_ground.h"
#include "trainer/strategy/strategy.h"
#include "trainer/strategy/strategy_config.h"

namespace farstep {

// Returns a strategy for the members of `view` that starts from `start`.
std::unique_ptr<Strategy> make_strategy(StrategyKind kind, const StrategySettings& settings,
                                        const View& view, StartValues start,
                                        const Surroundings& surroundings);

// Throws ConfigError, with the member under `path`, if the strategy does not accept these settings
// of a run.
void check_strategy(StrategyKind kind, const StrategySettings& settings, const JsonPath& path);

// What the rest of a run must know of a strategy.
struct StrategyTraits {
  bool can_be_retuned = false;  // codec, fragments and delay may change between two rounds
  // All sites take every step together, with equal state. So they take equal numbers of steps, none
  // can go on without another, and none joins later.
  bool steps_together = false;
  ExchangeKind exchange = ExchangeKind::kDirect;  // where the run file leaves it out
  // With steps_together, no exchange but these two.
  std::optional<ExchangeKind> other_exchange = {};
};

const StrategyTraits& traits_of(StrategyKind kind);

}  // namespace farstep
