// Writes simulated rounds as the event files of a run, so that `farstep report` shows them.
//
// Times begin in the year 2000, so the same scenario produces the same bytes. Losses, gradient
// norms and learning rates are absent and hashes are zeros, since nothing was trained. Not
// thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "heterogeneity/simulate/simulation.h"

namespace farstep::heterogeneity {

class EventFiles {
 public:
  // Writes to FOLDER/<site>/events.jsonl; `version` is Farstep's. Throws ConfigError if the folder
  // is not empty, DataError if it cannot be made.
  EventFiles(std::filesystem::path folder, const Scenario& scenario, std::string version);

  // Appends the next round to the files of the sites that take part. Throws DataError.
  void write(const SimulatedRound& round);

 private:
  std::string first_lines(const SimulatedRound& round, const SiteRound& site) const;
  std::string round_lines(const SimulatedRound& round, const SiteRound& site) const;

  const std::filesystem::path folder_;
  const Scenario scenario_;
  const std::string version_;
  std::vector<std::string> names_;  // by site id
  std::vector<bool> has_begun_;     // likewise
};

}  // namespace farstep::heterogeneity
