// A scenario: the sites, links and plan of a simulated run, as described in a file.
//
// Values, and functions that only read files; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/site_profile.h"
#include "heterogeneity/policy/plan_config.h"
#include "outer_optimizer/outer_config.h"
#include "outer_optimizer/strategy_kind.h"
#include "outer_optimizer/sync_config.h"
#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep::heterogeneity {

// A change of a site's speed, relative to its profile, from a round on.
struct RoundSpeed {
  int64_t round = 0;
  double times = 1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("round", round, "from this round on, counted from 1", required(at_least(1)));
    visit("times", times, "steps last so many times as long as the profile says",
          required(above(0)));
  }
};

struct ScenarioSite {
  std::string name;
  std::optional<SiteProfile> profile;
  std::string profile_file;
  bool hide_profile = false;
  bool trains = true;
  int64_t count = 1;
  std::string region;
  std::vector<RoundSpeed> speed;
  double jitter = 0, evaluate_seconds = 0, checkpoint_seconds = 0;
  int64_t joins_at_round = 1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the site; empty takes the profile's");
    visit("profile", profile, "what its devices and links really are");
    visit("profile_file", profile_file,
          "the same, in a file; under the scenario's folder if relative");
    visit("hide_profile", hide_profile, "the planner does not get the profile");
    visit("trains", trains,
          "false: it serves alone, with strategy.kind parameter_server; its profile needs no step "
          "times");
    visit("count", count, "so many sites alike, their names numbered from 1", at_least(1));
    visit("region", region, "where it is, for links between regions");
    visit("speed", speed, "when the site gets slower or faster, in order of `round`");
    visit("jitter", jitter, "a step lasts up to this share more or less, evenly spread",
          in_range(0, 0.9));
    visit("evaluate_seconds", evaluate_seconds, "its validation before each round", at_least(0));
    visit("checkpoint_seconds", checkpoint_seconds, "its checkpoint before each round",
          at_least(0));
    visit("joins_at_round", joins_at_round, "the first round that it takes part in", at_least(1));
  }

  // Returns how many times as long as by the profile its steps last in a round.
  double speed_times(int64_t round_number) const {
    double factor = 1;
    for (const auto& change : speed) {
      if (change.round <= round_number) factor = change.times;
    }
    return factor;
  }
  // The time of evaluation and checkpoint.
  double overhead_seconds() const { return evaluate_seconds + checkpoint_seconds; }
};

// The link between two sites without a more specific description.
struct DefaultLink {
  double rtt_seconds = 0;
  std::optional<double> bandwidth_bits_per_second;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("rtt_seconds", rtt_seconds, "round trip", at_least(0));
    visit("bandwidth_bits_per_second", bandwidth_bits_per_second, "each way; null is no limit",
          above(0));
  }
};

// The link between the sites of two regions, or inside one region.
struct RegionLink {
  std::string from, to;
  double rtt_seconds = 0;
  std::optional<double> bandwidth_bits_per_second;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("from", from, "a region", kRequired);
    visit("to", to, "a region, the same one for the ways inside it", kRequired);
    visit("rtt_seconds", rtt_seconds, "round trip", required(at_least(0)));
    visit("bandwidth_bits_per_second", bandwidth_bits_per_second,
          "of one site to one other, each way; null is no limit", above(0));
  }
};

struct Scenario {
  std::string name;
  int64_t rounds = 10, seed = 1;
  PlanConfig plan;
  outer_optimizer::AveragingRule averaging = outer_optimizer::OuterConfig{}.averaging;
  outer_optimizer::StrategyConfig strategy;
  outer_optimizer::SyncConfig sync;
  std::optional<int64_t> parameters, sequence_length, example_bytes;
  double outer_seconds = 0;
  std::string coordinator;
  DefaultLink link;
  std::vector<RegionLink> regions;
  std::vector<ScenarioSite> sites;

  // Returns the id of the site that adds up for all, where the strategy has one.
  std::size_t master() const;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the scenario", kRequired);
    visit("rounds", rounds, "outer rounds", at_least(1));
    visit("seed", seed, "seed of the jitter", at_least(0));
    visit("plan", plan, "work of a site in a round");
    visit("averaging", averaging, "weight of a site's delta in the mean");
    visit("strategy", strategy, "how the sites' replicas stay together; not eager_updates");
    visit("sync", sync, "what crosses the network, and how; in equal parts");
    visit("parameters", parameters,
          "parameters of the model; null takes the profiles', or 0: nothing to send", at_least(0));
    visit("sequence_length", sequence_length,
          "tokens of one sequence; null takes the profiles', or 1", at_least(1));
    visit("example_bytes", example_bytes,
          "with strategy.scatter: bytes of an example in a batch; null: of a sequence, 8 for each "
          "token and 8 more",
          at_least(1));
    visit("outer_seconds", outer_seconds, "the outer steps of every site in a round", at_least(0));
    visit("coordinator", coordinator, "the site that it runs at; empty is the first");
    visit("link", link, "the way between two sites, if neither's profile nor `regions` has it");
    visit("regions", regions, "the ways between regions and inside them");
    visit("sites", sites, "the sites; their order gives the site ids", required(at_least(1)));
  }
};

// Reads and validates a scenario. In the result every site has a profile, the profile's name and a
// count of 1; `parameters`, `sequence_length`, `example_bytes` and `coordinator` are set. Profile
// files are relative to `folder`; `file` is for messages.
//
// Throws ConfigError with file and JSON path. It refuses a `sync` that is not simulated, a site
// without step time, two sites with one name, and a link to an unknown peer. It also refuses
// profiles of different models, and a round 1 without sites.
Scenario scenario_from_json(const Json& json, const std::string& file,
                            const std::filesystem::path& folder);

}  // namespace farstep::heterogeneity
