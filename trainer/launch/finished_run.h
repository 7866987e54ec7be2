// Whether a site has all of its run already, so that a new start of it has nothing to do.
//
// Only reads files. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"

namespace farstep {

struct FinishedRun {
  std::string run = {};  // its name
  int64_t rounds_done = 0, rounds = 0;
  std::filesystem::path checkpoint = {};
  double join_seconds = 0;  // the run's
  // Why the site has to look for the others first, though its checkpoint has all rounds; empty: it
  // need not.
  std::string doubt = {};

  // Returns that the run is finished, and where the model is, in words.
  std::string text() const;
};

// Returns the run if the newest checkpoint of the site has all of its rounds. `run` is the run
// file; nullopt: the site names none. Then the rounds are those that the run had when the
// checkpoint was written. Returns nullopt too if that checkpoint is damaged, or of a run of another
// name: what starts then says so. Throws DataError if it is of another version of Farstep.
std::optional<FinishedRun> finished_run(const SiteConfig& site,
                                        const std::optional<RunConfig>& run);

}  // namespace farstep
