// The settings with which a program of its own joins a run of the outer optimizer: the parts of a
// run file and of a site's config that such a run has. Values; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outer_optimizer/codec/codec_config.h"
#include "outer_optimizer/outer_config.h"
#include "trainer/settings/load_config.h"
#include "wan/protocol/deadlines.h"

namespace farstep {

// The outer step, as in a run file, but for the number of rounds: the program decides when it ends.
struct OuterStepConfig {
  double learning_rate = outer_optimizer::OuterConfig{}.learning_rate;
  double momentum = outer_optimizer::OuterConfig{}.momentum;
  outer_optimizer::AveragingRule averaging = outer_optimizer::OuterConfig{}.averaging;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("learning_rate", learning_rate, "eta of the outer Nesterov step", above(0));
    visit("momentum", momentum, "mu of the outer Nesterov step", in_range(0, 0.999999));
    visit("averaging", averaging, "weight of a site's delta in the mean");
  }
};

// What crosses the network in a sync, by the exchange `direct` of a run file.
struct OuterSyncConfig {
  int64_t fragments = 1;
  outer_optimizer::CodecConfig codec;
  std::optional<int64_t> lanes;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("fragments", fragments,
          "equal parts of the values that a sync exchanges one after the other; more of them need "
          "less memory",
          in_range(1, 1024));
    visit("codec", codec, "how values travel");
    visit("lanes", lanes, "connections between two sites; null: 2, or 1 of more than four sites",
          in_range(1, 64));
  }
};

// The settings on which all sites must agree.
struct OuterRunConfig {
  std::string name;
  std::vector<std::string> sites;
  std::optional<int64_t> min_sites;
  OuterStepConfig outer;
  OuterSyncConfig sync;
  wan::Deadlines deadlines = without_pause();

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the run", kRequired);
    visit("sites", sites, "names of the sites, in their order", required(at_least(1)));
    visit("min_sites", min_sites,
          "sites that must be left for the run to go on when others are lost; null: all of `sites`",
          at_least(1));
    visit("outer", outer, "the outer optimizer");
    visit("sync", sync, "what crosses the network, and how");
    visit("deadlines", deadlines,
          "how long anything may take, as in a run file, but with a pause_seconds of 0");
  }

  // The others would wait for nobody: a site whose process has ended does not come back.
  static wan::Deadlines without_pause() {
    wan::Deadlines deadlines;
    deadlines.pause_seconds = 0;
    return deadlines;
  }
};

// The settings of one site.
struct OuterSiteConfig {
  std::string name;
  CoordinatorAddress coordinator;
  NetworkConfig network;
  std::string log_level = "warning";

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the site, as in the run", kRequired);
    visit("coordinator", coordinator, "where the sites meet", kRequired);
    visit("network", network, "the way to the peers", kRequired);
    visit("log_level", log_level, "trace, debug, info, warning, error or off");
  }
};

struct OuterSettings {
  LoadedSite loaded;  // as if it came from files
  std::string log_level;
};

// Reads both settings, JSON texts; `size` is the number of values that are trained. Throws
// ConfigError, with "run" or "site" and the JSON path.
OuterSettings read_outer_settings(std::string_view run, std::string_view site, int64_t size);

}  // namespace farstep
