// The planner's knowledge of a site: its profile, its steps and links in the run; and predicted
// step times.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/site_profile.h"
#include "heterogeneity/knowledge/step_time.h"

namespace farstep::heterogeneity {

// A step time measured in the run; it takes precedence over the profile.
struct SeenStep {
  int64_t batch = 0, micro_batch = 0;
  double seconds = 0;
};

// Links measured in the run; they take precedence over the profile.
struct SeenLinks {
  std::optional<double> uplink_bits_per_second;  // to all peers together
  std::optional<double> rtt_seconds;             // to the farthest peer
};

// Work that the run file sets for a site; only for the policy `uniform`.
struct Pins {
  std::optional<int64_t> local_steps, batch, micro_batch;
};

struct SiteKnowledge {
  std::string site;
  bool trains = true;  // false: it adds up the others' gradients, and has no batch
  std::optional<SiteProfile> profile = {};
  std::optional<SeenStep> seen = {};
  bool seen_in_round = false;  // `seen` is of a whole round, not of its first steps alone
  // The last round's step time as a share of `seen`, if it was so much shorter that a second round
  // must confirm it.
  std::optional<double> fall = {};
  SeenLinks seen_links = {};
  // Its own time between the start of a round and the sync, without steps: evaluation, checkpoint,
  // delta.
  double overhead_seconds = 0;
  Pins pins = {};
};

// Predicts the inner steps of a site: the profile's times, scaled by a step of the run.
class StepPredictor {
 public:
  explicit StepPredictor(const SiteKnowledge& site);

  // Uses this step of the run from now on.
  void see(const SeenStep& seen);

  // Returns the predicted seconds of an inner step whose batch is divided between the devices.
  // Returns nullopt if neither the run nor the profiles of all devices have a step time.
  std::optional<double> seconds(int64_t batch, int64_t micro_batch) const;

  // Returns the most sequences of the batch on one device; equal parts if no step times are known.
  int64_t largest_share(int64_t batch, int64_t micro_batch) const;

  // Returns the least batch whose time is known; seconds() of a smaller one is as long. Requires
  // is_timed().
  int64_t least_timed_batch() const;

  // Whether seconds() has a value.
  bool is_timed() const { return has_fits() || seen_; }

  // Whether the profile distinguishes batches; without it a larger batch is never faster.
  bool has_fits() const { return !fits_.empty(); }

 private:
  std::vector<int64_t> shares(int64_t batch, int64_t micro_batch) const;
  double fitted_seconds(int64_t batch, int64_t micro_batch) const;

  std::size_t num_devices_ = 1;
  std::vector<StepTimeFit> fits_;  // one for each device; empty unless all have one
  std::optional<SeenStep> seen_;
  double scale_ = 1;  // seen seconds / fitted seconds
};

// Returns one for each site, in their order.
std::vector<StepPredictor> predictors_of(std::span<const SiteKnowledge> sites);

// Does the same as StepPredictor::seconds().
std::optional<double> step_seconds(const SiteKnowledge& site, int64_t batch, int64_t micro_batch);

// Return the rate at which a site sends to all peers together, and the round trip to its farthest
// peer. A profile's rate is that of its fastest link. They return nullopt if neither run nor
// profile has the figure.
std::optional<double> uplink_bits_per_second(const SiteKnowledge& site);
std::optional<double> rtt_seconds(const SiteKnowledge& site);

// Returns the largest micro-batch that fits every device; nullopt if unknown.
std::optional<int64_t> most_micro_batch(const SiteKnowledge& site);

// Returns the sum of the devices' tflops(); nullopt if one is unknown.
std::optional<double> total_tflops(const SiteKnowledge& site);

}  // namespace farstep::heterogeneity
