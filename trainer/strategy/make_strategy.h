// Makes the strategy that a run's config names, and checks the settings that the strategy accepts.
#pragma once

#include <memory>

#include "trainer/base/view.h"
#include "trainer/config/json_fields.h"
#include "trainer/strategy/outer_sync.h"
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

// Returns whether codec, fragments and delay may change between two rounds.
bool can_be_retuned(StrategyKind kind);

}  // namespace farstep
