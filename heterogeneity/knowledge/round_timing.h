// A site's measurements of its own round and links, from which the next plan is made; and when a
// round by deadline is over.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "heterogeneity/knowledge/gradient_noise.h"
#include "heterogeneity/knowledge/partial_validation.h"
#include "trainer/config/fields.h"

namespace farstep::heterogeneity {

// One site's round so far. Every site gets to know it of every other one.
struct RoundTiming {
  int64_t steps = 0;  // 0: the site had no part in the round
  int64_t batch = 0, micro_batch = 0;
  double step_seconds = 0;      // typical_step_seconds() of its steps; 0: none was timed
  double overhead_seconds = 0;  // its own time before the sync that was not steps
  // Of the site's links; 0: not known.
  double uplink_bits_per_second = 0, rtt_seconds = 0;
  // The site was asked to stop: it has ended its round early, and leaves after it.
  bool is_leaving = false;
  GradientNoise noise = {};  // of the round's steps that were measured
  std::optional<PartialValidation> validation = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("steps", steps, "inner steps of the round so far", required(at_least(0)));
    visit("batch", batch, "sequences of an inner step", required(at_least(0)));
    visit("micro_batch", micro_batch, "sequences of one forward and backward",
          required(at_least(0)));
    visit("step_seconds", step_seconds, "typical time of an inner step; 0 if none was timed",
          at_least(0));
    visit("overhead_seconds", overhead_seconds,
          "the site's own time between the rounds' syncs that was not inner steps", at_least(0));
    visit("uplink_bits_per_second", uplink_bits_per_second,
          "known speed of the site's sends to all peers together; 0 if it is not known",
          at_least(0));
    visit("rtt_seconds", rtt_seconds, "round trip to the farthest peer; 0 if it is not known",
          at_least(0));
    visit("is_leaving", is_leaving,
          "the site was asked to stop: its round ends after these steps, and it leaves then");
    visit("noise", noise, "what the steps have shown of the gradient's noise");
    visit("validation", validation, "the site's part of its newest validation; null: it has none");
  }
  bool operator==(const RoundTiming&) const = default;
};

// Returns what all sites have measured of the gradient's noise.
GradientNoise noise_of_round(std::span<const RoundTiming> timings);

// Returns the step time to expect: the mean of `steps` (in their order, not empty) or of their
// second half, whichever is longer, without rare hiccups. So a site that becomes slower is seen in
// full at once. One that becomes faster must stay so for a round. Sites on one machine get faster
// whenever another one waits, and would otherwise get work that they cannot do together.
double typical_step_seconds(std::span<const double> steps);

// Returns the step time to expect from a run's first steps, at least two: the shorter one of the
// last two, as a start makes steps longer.
double measured_step_seconds(std::span<const double> steps);

// Whether a round of `round_seconds` has time for one more step: `elapsed_seconds` after its start,
// a step of `step_seconds` ends at most `slack_seconds` late.
bool has_room_for_step(double round_seconds, double elapsed_seconds, double step_seconds,
                       double slack_seconds);

}  // namespace farstep::heterogeneity
