// The work of each site in a round. Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace farstep::heterogeneity {

// The largest number of steps, and of sequences of a step, in a plan; larger figures are errors.
inline constexpr int64_t kMostWork = 1'000'000'000;

struct SitePlan {
  std::string site;
  int64_t local_steps = 0;
  int64_t batch = 0;        // sequences of an inner step
  int64_t micro_batch = 0;  // sequences of one forward and backward on one device, at most `batch`
  // The steps for which data is reserved: H; more in a round that ends by its deadline; fewer in
  // one that is planned again.
  int64_t most_steps = 0;
  int64_t steps_before = 0;  // of those, done when the round was planned again
  // Steps of the base work that it leaves out, as they would make the round too long.
  int64_t left_out_steps = 0;
  // Predictions for the round; nullopt if the step time is unknown.
  std::optional<double> step_seconds;     // one inner step
  std::optional<double> compute_seconds;  // all of them
  std::optional<double> idle_seconds;     // wait for the slowest site
  std::string reason;                     // of this work, one line

  // Whether it trains. Otherwise it serves alone: it takes part in the steps with a batch of 0, and
  // has no predictions.
  bool trains() const { return batch > 0; }
  // Returns the number of windows that the plan reserves for the site.
  int64_t sequences() const { return (most_steps - steps_before) * batch; }
  bool operator==(const SitePlan&) const = default;
};

struct RoundPlan {
  std::vector<SitePlan> sites;  // in the order of the view
  // From the start of the round until all sites are at the sync; nullopt if a site's is unknown.
  std::optional<double> round_seconds;
  // After this many steps of every site (its most_steps) the sites exchange their step times and
  // plan the rest of the round again; 0 in other rounds.
  int64_t measuring_steps = 0;
};

// Sets compute_seconds, idle_seconds and round_seconds from local_steps, step_seconds and the time
// that each site needs besides its steps (one value for each site). All sites of `plan` train.
void predict_round(RoundPlan& plan, std::span<const double> overhead_seconds);

// Returns the number of sites that train.
int64_t num_training(const RoundPlan& plan);

// Returns the predicted idle time of all sites that train; nullopt if one is unknown.
std::optional<double> total_idle_seconds(const RoundPlan& plan);

// Returns the beginning of a site's range among the sequences of the round. The sites' ranges
// follow each other in the order of the plan, in which the site has `place`.
int64_t range_begin(const RoundPlan& plan, std::size_t place);

// Returns the sequences of all sites in the round.
int64_t total_sequences(const RoundPlan& plan);

}  // namespace farstep::heterogeneity
