// How long a simulation takes.
//
//   simulate_bench SCENARIO ROUNDS
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "heterogeneity/simulate/simulation_result.h"
#include "trainer/base/clock.h"
#include "trainer/config/config_file.h"

using namespace farstep;

int main(int argc, char** argv) {
  if (argc != 3 || std::atol(argv[2]) < 1) {
    fmt::print(stderr, "usage: simulate_bench SCENARIO ROUNDS\n");
    return 2;
  }
  const RealClock clock;
  const double began = clock.now_seconds();
  auto json = load_json(argv[1]);
  json["rounds"] = std::atol(argv[2]);
  const auto scenario = heterogeneity::scenario_from_json(
      json, argv[1], std::filesystem::path(argv[1]).parent_path());
  heterogeneity::Simulation simulation(scenario, argv[1]);
  heterogeneity::SimulationResult result(scenario);
  for (int64_t round = 0; round < scenario.rounds; ++round) result.add(simulation.next_round());
  fmt::print("{} sites, {} rounds: {:.2f} s\n", scenario.sites.size(), scenario.rounds,
             clock.now_seconds() - began);
  return 0;
}
