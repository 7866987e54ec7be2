// What each site has to do in a round. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/run_config.h"

namespace farstep {

struct SitePlan {
  std::string site;
  int64_t local_steps = 0;
  int64_t batch = 0;        // sequences of an inner step
  int64_t micro_batch = 0;  // sequences of one forward and backward, at most `batch`
  // Sequences of the site's whole round.
  int64_t sequences() const { return local_steps * batch; }
};

// The plans of all sites, in site order.
using RoundPlan = std::vector<SitePlan>;

// Every site does plan.base_steps steps of plan.base_batch sequences, but for what the run file
// gives a site of its own. Throws ConfigError with `file` if a micro-batch exceeds its batch.
RoundPlan uniform_plan(const RunConfig& run, const std::string& file);

// Where the site's range begins among all sequences of the round: the sites' ranges follow each
// other in site order.
int64_t range_begin(const RoundPlan& plan, std::size_t site_id);

// Sequences of all sites in the round.
int64_t total_sequences(const RoundPlan& plan);

}  // namespace farstep
