// farstep simulate: outer rounds in simulated time.
#include <fmt/format.h>

#include "heterogeneity/simulate/event_files.h"
#include "heterogeneity/simulate/simulation_result.h"
#include "trainer/base/system/printable.h"
#include "trainer/commands/command_line.h"
#include "trainer/config/config_file.h"

namespace farstep {

namespace {

// A null member leaves the scenario's value.
struct SimulateOptions {
  std::vector<std::string> profiles;
  std::string scenario;
  std::optional<int64_t> rounds, seed;
  std::optional<outer_optimizer::AveragingRule> averaging;
  std::optional<heterogeneity::Policy> policy;
  std::optional<int64_t> base_steps, base_batch, micro_batch, critical_batch, most_steps;
  std::optional<bool> replan;
  std::optional<heterogeneity::RoundEnd> round_end;
  std::optional<double> slack_fraction, round_seconds;
  std::optional<outer_optimizer::StrategyKind> strategy;
  std::optional<bool> scatter;
  std::optional<int64_t> example_bytes;
  std::optional<int64_t> fragments, delay_steps;
  std::optional<outer_optimizer::CodecKind> codec;
  std::string out;
  bool json = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("profiles", profiles, "the sites' profiles, as `farstep profile` writes them");
    visit("scenario", scenario, "or a scenario file; the options below replace what it says");
    visit("rounds", rounds, "outer rounds");
    visit("seed", seed, "seed of the jitter");
    visit("averaging", averaging, "weight of a site's delta in the mean");
    visit("policy", policy, "how the sites share the work; of profiles hybrid, if not given");
    visit("base_steps", base_steps, "local steps of the slowest site");
    visit("base_batch", base_batch, "sequences of one inner step of a site");
    visit("micro_batch", micro_batch, "sequences of one forward and backward on a device");
    visit("critical_batch", critical_batch, "most sequences of all sites' inner steps together");
    visit("most_steps", most_steps, "most local steps of a site under hybrid");
    visit("round_seconds", round_seconds, "longest round under hybrid, without the exchange");
    visit("replan", replan, "true or false: hybrid plans every round from those before");
    visit("round_end", round_end, "steps or deadline");
    visit("slack_fraction", slack_fraction, "by how much of a round a last step may be late");
    visit("strategy", strategy, "how the sites' replicas stay together");
    visit("scatter", scatter,
          "true or false: the master sends all sites their batches; with data_parallel_master");
    visit("example_bytes", example_bytes, "bytes of an example in these batches");
    visit("fragments", fragments, "parts of the model that are synced one after the other");
    visit("delay_steps", delay_steps, "inner steps in which training hides a fragment's sync");
    visit("codec", codec, "how the deltas and their mean travel");
    visit("out", out, "also write events to this new folder, for `farstep report`", a_folder());
    visit("json", json, "print one JSON object instead of a table");
  }
};

heterogeneity::Scenario read_scenario(const SimulateOptions& options, const std::string& source) {
  if (options.profiles.empty() == options.scenario.empty()) {
    throw ConfigError("farstep simulate: give either --profiles or --scenario");
  }
  Json json{{"name", "profiles"}, {"plan", {{"policy", "hybrid"}}}, {"sites", Json::array()}};
  for (const auto& file : options.profiles) json["sites"].push_back({{"profile_file", file}});
  if (!options.scenario.empty()) json = load_json(options.scenario);
  // Through the scenario's JSON, so that an option is checked as the member that it replaces.
  const auto given = to_json(options);
  // A member of the scenario, and the option that replaces it.
  const auto replace = [&](const std::string& member, const std::string& option) {
    const auto& value = given.at(option);
    if (!value.is_null()) apply_override(json, member + "=" + value.dump());
  };
  for (const std::string name : {"rounds", "seed", "averaging", "example_bytes"}) {
    replace(name, name);
  }
  for (const std::string name :
       {"policy", "base_steps", "base_batch", "micro_batch", "critical_batch", "most_steps",
        "round_seconds", "replan", "round_end", "slack_fraction"}) {
    replace("plan." + name, name);
  }
  for (const std::string name : {"fragments", "delay_steps"}) replace("sync." + name, name);
  replace("strategy.kind", "strategy");
  replace("strategy.scatter", "scatter");
  replace("sync.codec.kind", "codec");
  return heterogeneity::scenario_from_json(json, source,
                                           std::filesystem::path(options.scenario).parent_path());
}

}  // namespace

int simulate_command(const Arguments& arguments) {
  const auto options = parse_command_line<SimulateOptions>(
      "simulate", arguments,
      {config_section<heterogeneity::Scenario>("Scenario file", "farstep-scenario(5)")});
  if (!options) return 0;
  const auto source = options->scenario.empty() ? "farstep simulate" : options->scenario;
  const auto scenario = read_scenario(*options, source);
  heterogeneity::Simulation simulation(scenario, source);
  heterogeneity::SimulationResult result(scenario);
  std::optional<heterogeneity::EventFiles> files;
  if (!options->out.empty()) files.emplace(options->out, scenario, FARSTEP_VERSION);
  // Round by round, so that a run of a thousand sites needs the memory of one round.
  for (int64_t round = 0; round < scenario.rounds; ++round) {
    const auto& simulated = simulation.next_round();
    result.add(simulated);
    if (files) files->write(simulated);
  }
  // The names in a profile are another site's.
  fmt::print("{}", options->json ? simulation_json(result).dump() + "\n"
                                 : safe_lines(simulation_text(scenario, result)));
  return 0;
}

}  // namespace farstep
