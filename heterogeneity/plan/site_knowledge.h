// What is known of a site: its profile, the steps seen in the run, and how long a step would take.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heterogeneity/plan/site_profile.h"
#include "heterogeneity/plan/step_time.h"
#include "trainer/config/run_config.h"

namespace farstep {

// A step time seen in the run itself; it goes before the profile's.
struct SeenStep {
  int64_t batch = 0, micro_batch = 0;
  double seconds = 0;
};

// What the run itself has shown of a site's links; it goes before the profile's.
struct SeenLinks {
  std::optional<double> uplink_bits_per_second;  // to all peers together
  std::optional<double> rtt_seconds;             // to the farthest peer
};

// Work that the run file itself gives a site; the policy `uniform` only.
struct Pins {
  std::optional<int64_t> local_steps, batch, micro_batch;
};

struct SiteKnowledge {
  std::string site;
  std::optional<SiteProfile> profile;
  std::optional<SeenStep> seen;
  SeenLinks seen_links = {};
  // Its own time between the start of a round and the sync that is not steps: evaluation,
  // checkpoint, delta.
  double overhead_seconds = 0;
  Pins pins;
};

// The run's sites with their pins, in order of site ids; nothing else is known of them.
std::vector<SiteKnowledge> sites_of(const RunConfig& run);

// How long the inner steps of a site take: the profile's, scaled by what was seen in the run.
class StepPredictor {
 public:
  explicit StepPredictor(const SiteKnowledge& site);

  // Goes by this step of the run from now on.
  void see(const SeenStep& seen);

  // Predicted seconds of an inner step whose batch is split over the devices; nothing if neither
  // the run has timed one nor the profile of every device.
  std::optional<double> seconds(int64_t batch, int64_t micro_batch) const;

  // Most sequences of the batch that one device gets; even shares where no step times are known.
  int64_t largest_share(int64_t batch, int64_t micro_batch) const;

  // Whether seconds() knows anything.
  bool is_timed() const { return has_fits() || seen_; }

  // Whether the profile tells batches apart; without it a larger batch is never faster.
  bool has_fits() const { return !fits_.empty(); }

 private:
  std::vector<int64_t> shares(int64_t batch, int64_t micro_batch) const;
  double fitted_seconds(int64_t batch, int64_t micro_batch) const;

  std::size_t num_devices_ = 1;
  std::vector<StepTimeFit> fits_;  // one a device; empty unless each has one
  std::optional<SeenStep> seen_;
  double scale_ = 1;  // seen seconds / fitted seconds
};

// One a site, in their order.
std::vector<StepPredictor> predictors_of(std::span<const SiteKnowledge> sites);

// As StepPredictor::seconds().
std::optional<double> step_seconds(const SiteKnowledge& site, int64_t batch, int64_t micro_batch);

// How fast a site sends to all peers together, a profile's fastest link standing for it; and the
// round trip to its farthest peer. Nothing if neither the run nor the profile tells.
std::optional<double> uplink_bits_per_second(const SiteKnowledge& site);
std::optional<double> rtt_seconds(const SiteKnowledge& site);

// Most sequences of one forward and backward that fit on every device, as far as that is known.
std::optional<int64_t> most_micro_batch(const SiteKnowledge& site);

// Sum of the devices' tflops(); nothing if one is not known.
std::optional<double> total_tflops(const SiteKnowledge& site);

}  // namespace farstep
