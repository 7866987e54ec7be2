#include "tests/heterogeneity/simulate/scenarios.h"

#include "trainer/config/config_file.h"

namespace farstep::heterogeneity {

Json site_json(const std::string& name, double step_seconds) {
  const Json device{
      {"name", "GPU"},
      {"step_seconds", Json::array({{{"micro_batch", 4}, {"seconds", step_seconds}}})}};
  return {{"profile", {{"site", name}, {"devices", Json::array({device})}}}};
}

Json scenario_json(const std::vector<double>& step_seconds, const std::string& policy) {
  Json sites = Json::array();
  for (const double seconds : step_seconds) {
    sites.push_back(site_json("s" + std::to_string(sites.size()), seconds));
  }
  return {{"name", "test"}, {"plan", {{"policy", policy}}}, {"sites", std::move(sites)}};
}

Scenario scenario_of(const Json& json) {
  return scenario_from_json(json, "test.json", "");
}

Json shipped_json(const std::string& name) {
  return load_json(std::filesystem::path(FARSTEP_SCENARIO_FOLDER) / name);
}

Scenario shipped_scenario(const Json& json) {
  return scenario_from_json(json, "shipped", FARSTEP_SCENARIO_FOLDER);
}

SimulationResult simulate(const Scenario& scenario) {
  Simulation simulation(scenario, "test.json");
  SimulationResult result(scenario);
  for (int64_t round = 0; round < scenario.rounds; ++round) result.add(simulation.next_round());
  return result;
}

}  // namespace farstep::heterogeneity
