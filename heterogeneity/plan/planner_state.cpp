#include "heterogeneity/plan/planner_state.h"

#include <utility>

namespace farstep {

PlannerState planner_state_from_json(const Json& json) {
  try {
    return read_json<PlannerState>(json, "the plan's state");
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

LearnedState learned_state(const SiteKnowledge& known) {
  LearnedState state{.site = known.site,
                     .seen = {},
                     .overhead_seconds = known.overhead_seconds,
                     .uplink_bits_per_second = known.seen_links.uplink_bits_per_second,
                     .rtt_seconds = known.seen_links.rtt_seconds};
  if (known.seen) {
    state.seen = SeenState{known.seen->batch, known.seen->micro_batch, known.seen->seconds};
  }
  return state;
}

SiteKnowledge with_learned(SiteKnowledge known, const LearnedState& state) {
  known.site = state.site;
  known.overhead_seconds = state.overhead_seconds;
  known.seen_links = {state.uplink_bits_per_second, state.rtt_seconds};
  // The saved figures count alone, as they do at the other sites.
  known.seen.reset();
  if (state.seen) {
    known.seen = SeenStep{state.seen->batch, state.seen->micro_batch, state.seen->seconds};
  }
  return known;
}

}  // namespace farstep
