// Makes the strategy that a run's config names, and checks the settings that the strategy accepts.
#pragma once

#include <memory>

#include "outer_optimizer/strategy_kind.h"
#include "trainer/base/view.h"
#include "trainer/config/json_fields.h"
#include "trainer/strategy/outer_sync/strategy_ground.h"
#include "trainer/strategy/strategy.h"

namespace farstep {

// Returns a strategy for the members of `view` that starts from `start`.
std::unique_ptr<Strategy> make_strategy(outer_optimizer::StrategyKind kind,
                                        const StrategySettings& settings, const View& view,
                                        StartValues start, const Surroundings& surroundings);

// Throws ConfigError, with the member under `path`, if the strategy does not accept these settings
// of a run.
void check_strategy(outer_optimizer::StrategyKind kind, const StrategySettings& settings,
                    const JsonPath& path);

}  // namespace farstep
