// The figures of a simulation: what `farstep simulate` prints.
//
// Not thread-safe: one owner.
#pragma once

#include <string>
#include <vector>

#include "heterogeneity/simulate/simulation.h"
#include "trainer/config/json_fields.h"

namespace farstep {

struct SimulatedSite {
  std::string site;
  int64_t rounds = 0;                      // that it took part in
  int64_t last_steps = 0, last_batch = 0;  // of its last round
  TimeUse time;                            // over the run
};

struct SimulationResult {
  explicit SimulationResult(const Scenario& scenario);
  // Adds the round that comes next.
  void add(const SimulatedRound& round);

  // Means a round of the run, whether a site took part in it or not; idle is waiting for peers,
  // the papers' GPU idle time.
  double idle_seconds(const SimulatedSite& site) const;
  double total_idle_seconds() const;

  int64_t rounds = 0;
  std::vector<SimulatedSite> sites;    // in order of site ids
  std::vector<double> idle_fractions;  // by round: waiting for peers by all time of the sites
};

// {"rounds","sites":[{"site","compute_seconds","idle_seconds"}],"total_idle_seconds"}: means a
// round, the total over the sites.
Json simulation_json(const SimulationResult& result);

// The same as a table with a line a site, and how the share of idle time went round by round: long
// runs and many sites are shortened.
std::string simulation_text(const Scenario& scenario, const SimulationResult& result);

}  // namespace farstep
