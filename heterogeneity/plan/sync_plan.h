// How a sync should cross the network: which codec, how many connections, how many fragments, and
// how long each is under way while training goes on.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "heterogeneity/plan/site_knowledge.h"
#include "trainer/config/run_config.h"

namespace farstep {

// What the choice depends on.
struct SyncFacts {
  int64_t parameters = 0;
  int64_t num_sites = 0;
  double uplink_bits_per_second = 0;  // of the site with the slowest
  double rtt_seconds = 0;             // between the two sites that are farthest apart
  double step_seconds = 0;            // of a site that takes base_steps steps
  int64_t base_steps = 0;             // of a round
};

struct SyncPlan {
  CodecKind codec = CodecKind::kFp32;
  int64_t lanes = 1, fragments = 1, delay_steps = 0;
  double sync_seconds = 0;     // of one fragment, from the first delta sent to the mean applied
  double exposed_seconds = 0;  // of a round: what training cannot hide
  double exposed_share = 0;    // of the round
  std::string reason = {};     // in words
};

// The facts from what is known of the sites, nothing if a step time or, with several sites, an
// uplink is not.
std::optional<SyncFacts> sync_facts(std::span<const SiteKnowledge> sites, const PlanConfig& config,
                                    int64_t parameters);

// The sync whose exposed time is at most `target_share` of the round, and that costs the least
// loss: of codecs, fp32 before int8 before int4; no delay before a short one (a delay of a tenth of
// the round costs ten times what int4 does); few fragments before many. If none keeps the target,
// the one with the least exposed time, and the reason says so. `target_share` is above 0.
SyncPlan plan_sync(const SyncFacts& facts, double target_share);

// Connections between two sites that such links need; nothing if an uplink is not known.
std::optional<int64_t> lanes_for(std::span<const SiteKnowledge> sites);

// What to change `now` to (codec, fragments and delay; not lanes, which are connected), or nothing
// if it is good enough. Links are taken to be a fifth slower than `facts` says, so that the new
// sync keeps the target on a line that varies. `now` stays while it keeps the target, unless one
// that costs at most half its loss does too; if it does not, what replaces it must expose a fifth
// less. So the figures of a link must change by more than a fifth before one choice replaces
// another and then is replaced by it. Of other codecs than plan_sync's the loss is taken to be that
// of the next coarser of these.
std::optional<SyncPlan> better_sync(const SyncFacts& facts, double target_share,
                                    const SyncConfig& now);

// `now` with the plan's codec, fragments and delay.
SyncConfig changed_to(const SyncConfig& now, const SyncPlan& plan);

// What a fragment's sync takes: two trips to the coordinator, its bytes through the slowest uplink
// in both directions, two hops, and some passes over its values in memory.
double fragment_sync_seconds(const SyncFacts& facts, CodecKind codec, int64_t fragments);

}  // namespace farstep
