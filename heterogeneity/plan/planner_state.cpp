#include "heterogeneity/plan/planner_state.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"

namespace farstep::heterogeneity {

namespace {

constexpr double kMostSequencesOfRound = 1e15;  // far more than any has

void require_work(const MemberState& member) {
  const bool serves = member.batch == 0;
  if (serves == (member.micro_batch == 0) && member.steps_before <= member.local_steps) return;
  throw DataError(fmt::format(
      "the plan's state: site {} cannot do {} local steps, {} of them before, with "
      "batches of {} and micro-batches of {}",
      member.site, member.local_steps, member.steps_before, member.batch, member.micro_batch));
}

}  // namespace

PlannerState planner_state_from_json(const Json& json) {
  try {
    auto state = read_json<PlannerState>(json, "the plan's state");
    std::ranges::for_each(state.sites, require_work);
    double sequences = 0;
    for (const auto& member : state.sites) {
      sequences += static_cast<double>(member.local_steps) * static_cast<double>(member.batch);
    }
    if (sequences > kMostSequencesOfRound) {
      throw DataError(
          fmt::format("the plan's state: a round of {} sequences, which is too many", sequences));
    }
    return state;
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

LearnedState learned_state(const SiteKnowledge& known) {
  LearnedState state{.site = known.site,
                     .seen = {},
                     .seen_in_round = known.seen_in_round,
                     .fall = known.fall,
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
  known.seen_in_round = state.seen_in_round;
  known.fall = state.fall;
  known.overhead_seconds = state.overhead_seconds;
  known.seen_links = {state.uplink_bits_per_second, state.rtt_seconds};
  // The saved figures count alone, as they do at the other sites.
  known.seen.reset();
  if (state.seen) {
    known.seen = SeenStep{state.seen->batch, state.seen->micro_batch, state.seen->seconds};
  }
  return known;
}

}  // namespace farstep::heterogeneity
