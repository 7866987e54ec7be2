// The run file: all settings on which the sites of a run must agree. It consists of the settings
// that each component defines.
//
// The coordinator sends it to the sites. It refuses a site whose own copy differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heterogeneity/policy/plan_config.h"
#include "outer_optimizer/outer_config.h"
#include "outer_optimizer/strategy_kind.h"
#include "outer_optimizer/sync_config.h"
#include "trainer/checkpoint/checkpoint_config.h"
#include "trainer/config/json_fields.h"
#include "trainer/data/data_config.h"
#include "trainer/inner/inner_config.h"
#include "trainer/model/shape/model_config.h"
#include "trainer/strategy/outer_sync/strategy_ground.h"
#include "trainer/validation/evaluate_config.h"
#include "wan/admission/served_run.h"
#include "wan/protocol/deadlines.h"

namespace farstep {

struct RunConfig {
  std::string name;
  int64_t seed = 1;
  std::vector<heterogeneity::RunSite> sites;
  std::optional<int64_t> min_sites, max_sites;
  ModelConfig model;
  DataConfig data;
  InnerConfig inner;
  outer_optimizer::StrategyConfig strategy;
  outer_optimizer::OuterConfig outer;
  outer_optimizer::SyncConfig sync;
  heterogeneity::PlanConfig plan;
  EvaluateConfig evaluate;
  CheckpointConfig checkpoint;
  wan::Deadlines deadlines;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the run", kRequired);
    visit("seed", seed, "seed of the weights and of the data order", at_least(0));
    visit("sites", sites, "the sites for which the run waits when it begins, in their order",
          kRequired);
    visit(
        "min_sites", min_sites,
        "sites that must be there for the run to go on when others are lost; with fewer it pauses "
        "(deadlines.pause_seconds). To begin, it waits for all of `sites`; but for nine tenths of "
        "deadlines.join_seconds at most, if so many and more than half are there. null: all of "
        "`sites`",
        at_least(1));
    visit("max_sites", max_sites,
          "sites that may be there at once. More than `sites` has: the others may have any name, "
          "and join and leave at any time; give network.keys, or anybody can. null: those of "
          "`sites` alone",
          at_least(1));
    visit("model", model, "the model");
    visit("data", data, "the data recipe");
    visit("inner", inner, "the inner optimizer");
    visit("strategy", strategy, "how the sites' replicas stay together");
    visit("outer", outer, "the outer optimizer");
    visit("sync", sync, "what crosses the network, and how");
    visit("plan", plan, "work of a site in a round");
    visit("evaluate", evaluate, "validation of theta_global");
    visit("checkpoint", checkpoint, "checkpoints");
    visit("deadlines", deadlines, "how long anything may take");
  }

  // Whether sites that `sites` does not name may join.
  bool is_open() const { return max_sites.value_or(0) > std::ssize(sites); }
  int64_t most_sites() const { return max_sites.value_or(std::ssize(sites)); }
  // Returns the index of the site in `sites`. Throws ConfigError if it is not there.
  std::size_t site_id(const std::string& site) const;
  // Returns the site's settings: those of `sites`, or in an open run the defaults. Throws
  // ConfigError if it does not take part.
  heterogeneity::RunSite site(const std::string& site) const;
  // Returns whether the site trains. Otherwise it serves alone.
  bool trains(const std::string& name_of_site) const { return site(name_of_site).trains; }
  // Returns the site that adds up and updates for all, where the strategy has one.
  const std::string& master() const;
  // Returns whether the site reads examples, to train on and to validate with. Otherwise it serves
  // alone, or the master sends it its batches.
  bool reads_data(const std::string& name_of_site) const;
  bool is_of_images() const { return model.family == ModelFamily::kImages; }
  // The targets of an example: a sequence's tokens, or an image's one label; and what they are
  // called.
  int64_t targets_per_example() const { return is_of_images() ? 1 : data.sequence_length; }
  std::string_view target_name() const { return is_of_images() ? "images" : "tokens"; }
};

// Returns the settings of the run's strategy.
StrategySettings strategy_settings(const RunConfig& run);

// Reads and validates a run file's JSON; `file` is for messages. Sets what follows from
// strategy.kind and is left out: the exchange, and for sites that step together that nobody waits
// for a lost one; and as sync.servers the sites that serve alone.
RunConfig run_config_from_json(const Json& json, const std::string& file);

// Throws ConfigError if a run with stand-by coordinators could go on at two of them at once.
void require_majority(const RunConfig& run, const std::string& file);

// Returns the settings that a coordinator of the run uses. `place`: among several; nullopt: it is
// the only one.
wan::ServedRun served_run(const RunConfig& run, std::optional<int64_t> place = {});

}  // namespace farstep
