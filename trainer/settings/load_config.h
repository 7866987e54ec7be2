// Loads configs: the file of a site or of a coordinator, the run file that it names, and --set
// overrides of both.
//
// Thread-safe: it only reads files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/json_fields.h"
#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"
#include "wan/admission/served_run.h"

namespace farstep {

// A site's config, with the run file's JSON if the site names one.
struct LoadedSite {
  SiteConfig site;          // paths made absolute
  std::optional<Json> run;  // the run config, overrides applied, defaults spelled out
  std::string run_file;     // for messages; empty without one
  std::string file = {};    // the site's config, for messages
};

// Loads a site's config and its run file, with --set overrides ("run." reaches into the run file).
// Throws ConfigError with file and JSON path.
LoadedSite load_site(const std::filesystem::path& file, const std::vector<std::string>& overrides);

// Config of `farstep coordinator`: the coordinator alone.
struct CoordinatorConfig {
  std::string run;
  std::string endpoint;
  std::string keys;
  std::string output;
  std::string journal;
  std::optional<int64_t> place;
  std::string log_level = "info";

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("run", run, "the run file", kRequired);
    visit("endpoint", endpoint,
          "where to listen, tcp://HOST:PORT; the host * is all addresses of the machine",
          kRequired);
    visit("keys", keys,
          "folder that `farstep keys` made for the site whose name the coordinator bears: secure "
          "links; empty: plain TCP");
    visit("output", output, "folder for the coordinator's log and journal; empty writes none");
    visit(
        "journal", journal,
        "file from which a restarted coordinator goes on with its run; empty: coordinator.journal "
        "in the output folder");
    visit("place", place,
          "if the run has stand-by coordinators: which one this is in the sites' "
          "coordinator.endpoints, from 0; null: it is the only one",
          in_range(0, wan::kMostCoordinators - 1));
    visit("log_level", log_level, "trace, debug, info, warning or error");
  }
};

struct LoadedCoordinator {
  CoordinatorConfig coordinator;
  Json run;
};

// Loads the coordinator's config and its run file, with --set overrides as in load_site.
LoadedCoordinator load_coordinator(const std::filesystem::path& file,
                                   const std::vector<std::string>& overrides);

}  // namespace farstep
