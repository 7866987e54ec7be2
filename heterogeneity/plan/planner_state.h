// What a checkpoint saves of the planner: what the run has shown of each site, and the members'
// work.
//
// Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heterogeneity/knowledge/gradient_noise.h"
#include "heterogeneity/knowledge/site_knowledge.h"
#include "heterogeneity/policy/plan.h"
#include "trainer/config/fields.h"
#include "trainer/config/json_fields.h"

namespace farstep::heterogeneity {

// Larger times and rates are mistakes, and plans of them would not be finite.
inline constexpr double kMostSeconds = 1e9, kMostBits = 1e18;

struct SeenState {
  int64_t batch = 0, micro_batch = 0;
  double seconds = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("batch", batch, "sequences of the step", required(in_range(1, kMostWork)));
    visit("micro_batch", micro_batch, "of its micro-batches", required(in_range(1, kMostWork)));
    visit("seconds", seconds, "how long the step takes",
          required(Rules{.least = 0, .most = kMostSeconds, .above_least = true}));
  }
};

// What the run has shown of a site.
struct LearnedState {
  std::string site;
  std::optional<SeenState> seen;
  bool seen_in_round = false;
  std::optional<double> fall;
  double overhead_seconds = 0;
  std::optional<double> uplink_bits_per_second, rtt_seconds;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("site", site, "name of the site", kRequired);
    visit("seen", seen, "the step time that the run has shown");
    visit("seen_in_round", seen_in_round, "whether that is of a whole round");
    visit("fall", fall, "the last round's step time as a share of it, not confirmed yet",
          Rules{.least = 0, .most = 1, .above_least = true});
    visit("overhead_seconds", overhead_seconds, "its time besides the steps",
          required(in_range(0, kMostSeconds)));
    visit("uplink_bits_per_second", uplink_bits_per_second, "that the run has shown",
          Rules{.least = 0, .most = kMostBits, .above_least = true});
    visit("rtt_seconds", rtt_seconds, "to the farthest peer, that the run has shown",
          in_range(0, kMostSeconds));
  }
};

struct MemberState : LearnedState {
  int64_t local_steps = 0, batch = 0, micro_batch = 0, most_steps = 0, steps_before = 0,
          left_out_steps = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    LearnedState::fields(visit);
    visit("local_steps", local_steps, "of the next round", required(in_range(1, kMostWork)));
    visit("batch", batch, "of the next round; 0: it serves alone",
          required(in_range(0, kMostWork)));
    visit("micro_batch", micro_batch, "of the next round", required(in_range(0, kMostWork)));
    // A deadline leaves room for more than the planned steps.
    visit("most_steps", most_steps, "of the next round", required(in_range(1, 10.0 * kMostWork)));
    visit("steps_before", steps_before, "done when the round was planned again",
          in_range(0, kMostWork));
    visit("left_out_steps", left_out_steps, "of the base work, which the next round leaves out",
          in_range(0, kMostWork));
  }
};

struct PlannerState {
  std::vector<MemberState> sites;
  std::vector<LearnedState> away;
  GradientNoise noise = {};
  std::optional<int64_t> base_batch = {};

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("sites", sites, "the members, in order of the plan", kRequired);
    visit("away", away, "known sites that are not members");
    visit("noise", noise, "what the rounds have shown of the gradient's noise");
    visit("base_batch", base_batch, "as it has grown; null: it does not grow",
          in_range(1, kMostWork));
  }
};

// Throws DataError if `json` is malformed, or the work of a member is none.
PlannerState planner_state_from_json(const Json& json);

// Returns what the run has shown of the site.
LearnedState learned_state(const SiteKnowledge& known);

// Returns `known` with the figures of `state` instead of its own; the profile and pins stay.
SiteKnowledge with_learned(SiteKnowledge known, const LearnedState& state);

}  // namespace farstep::heterogeneity
