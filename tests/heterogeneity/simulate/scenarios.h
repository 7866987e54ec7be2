// Scenarios for tests, made in memory.
#pragma once

#include <string>
#include <vector>

#include "heterogeneity/simulate/simulation_result.h"

namespace farstep::heterogeneity {

// A site with one device that takes `step_seconds` for a batch of 4.
Json site_json(const std::string& name, double step_seconds);

// A scenario of sites s0, s1, ... with these step times, 100 base steps of 4, ten rounds.
Json scenario_json(const std::vector<double>& step_seconds, const std::string& policy);

// The scenario of `json`, named "test.json" in messages.
Scenario scenario_of(const Json& json);

// One of configs/scenarios.
Json shipped_json(const std::string& name);
Scenario shipped_scenario(const Json& json);

// All rounds of the scenario.
SimulationResult simulate(const Scenario& scenario);

}  // namespace farstep::heterogeneity
