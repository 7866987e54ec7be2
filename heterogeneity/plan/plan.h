// What each site has to do in a round. Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace farstep {

// Steps, and sequences of a step, that a site may be given; figures that ask for more are mistaken.
inline constexpr int64_t kMostWork = 1'000'000'000;

struct SitePlan {
  std::string site;
  int64_t local_steps = 0;
  int64_t batch = 0;        // sequences of an inner step
  int64_t micro_batch = 0;  // sequences of one forward and backward on one device, at most `batch`
  int64_t most_steps = 0;   // room for the steps of a round that ends by its deadline; else H
  // Prediction of the round; null where nothing is known of how long a step takes.
  std::optional<double> step_seconds;     // one inner step
  std::optional<double> compute_seconds;  // all of them
  std::optional<double> idle_seconds;     // waiting for the slowest site
  std::string reason;                     // why it got what it got, one line

  // Windows of the data order that are the site's in the round.
  int64_t sequences() const { return most_steps * batch; }
};

struct RoundPlan {
  std::vector<SitePlan> sites;  // in order of site ids
  // From the start of the round until every site is at the sync; null if a site's is not known.
  std::optional<double> round_seconds;
};

// Fills in compute_seconds, idle_seconds and round_seconds from local_steps, step_seconds and the
// time that each site needs besides its steps (one a site).
void predict_round(RoundPlan& plan, std::span<const double> overhead_seconds);

// Predicted idle time of all sites together; null where a site's is.
std::optional<double> total_idle_seconds(const RoundPlan& plan);

// Where the site's range begins among all sequences of the round: the sites' ranges follow each
// other in site order.
int64_t range_begin(const RoundPlan& plan, std::size_t site_id);

// Sequences of all sites in the round.
int64_t total_sequences(const RoundPlan& plan);

}  // namespace farstep
