// The figures of a simulation, as `farstep simulate` prints them.
//
// Not thread-safe: one owner.
#pragma once

#include <string>
#include <vector>

#include "heterogeneity/simulate/simulation.h"
#include "trainer/config/json_fields.h"

namespace farstep::heterogeneity {

struct SimulatedSite {
  std::string site;
  int64_t rounds = 0;                      // in which it took part
  int64_t last_steps = 0, last_batch = 0;  // of its last round
  int64_t tokens = 0;                      // over the run
  TimeUse time;                            // over the run
  double hidden_wan_seconds = 0;           // over the run: syncs hidden behind training
};

struct SimulationResult {
  explicit SimulationResult(const Scenario& scenario);
  // Adds the next round.
  void add(const SimulatedRound& round);

  // Return means per round of the run, including rounds in which a site did not take part. Idle
  // time is the wait for peers, the papers' GPU idle time.
  double idle_seconds(const SimulatedSite& site) const;
  double total_idle_seconds() const;

  // The time of the whole run, and the tokens of all sites in a second of it.
  double run_seconds() const;
  double tokens_per_second() const;

  int64_t sequence_length = 1;
  int64_t rounds = 0;
  std::vector<SimulatedSite> sites;    // in order of site ids
  std::vector<double> idle_fractions;  // by round: share of the sites' time in waits for peers
};

// Returns
// {"rounds","sites":[{"site","compute_seconds","idle_seconds","wan_seconds","serve_seconds",
// "hidden_wan_seconds","tokens"}],"total_idle_seconds","run_seconds","tokens_per_second"}. The
// sites' seconds are means per round, and total_idle_seconds is their sum; run_seconds and tokens
// are of the run. wan_seconds is the time that training did not hide.
Json simulation_json(const SimulationResult& result);

// Returns the same as a table with one line per site, and the share of idle time round by round.
// Long runs and many sites are shortened.
std::string simulation_text(const Scenario& scenario, const SimulationResult& result);

}  // namespace farstep::heterogeneity
