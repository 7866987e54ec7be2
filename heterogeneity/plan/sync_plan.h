// Plans a sync: its codec, connections, fragments, and how long training goes on while a fragment
// is under way.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "heterogeneity/knowledge/site_knowledge.h"
#include "heterogeneity/policy/plan_config.h"
#include "outer_optimizer/sync_config.h"

namespace farstep::heterogeneity {

// The input of the choice.
struct SyncFacts {
  int64_t parameters = 0;
  int64_t num_sites = 0;
  double uplink_bits_per_second = 0;  // the slowest site's
  double rtt_seconds = 0;             // between the two sites that are farthest apart
  double step_seconds = 0;            // the step time of a site with base_steps steps
  int64_t base_steps = 0;             // of a round
};

struct SyncPlan {
  outer_optimizer::CodecKind codec = outer_optimizer::CodecKind::kFp32;
  int64_t lanes = 1, fragments = 1, delay_steps = 0;
  double sync_seconds = 0;     // of one fragment, from the first delta sent to the mean applied
  double exposed_seconds = 0;  // of a round: the time that training cannot hide
  double exposed_share = 0;    // of the round
  std::string reason = {};     // in words
};

// Returns the facts from the knowledge of the sites; nullopt if a step time is unknown or, with
// several sites, an uplink.
std::optional<SyncFacts> sync_facts(std::span<const SiteKnowledge> sites, const PlanConfig& config,
                                    int64_t parameters);

// Returns the sync of the least loss among those whose exposed time is at most `target_share` of
// the round. The order of loss is: fp32, int8, int4, int2; no delay before a short one; few
// fragments before many. A delay of a tenth of the round costs two thirds of int2's loss, and ten
// times int4's. If no sync meets the target, returns the one with the least exposed time; its
// reason says so. `target_share` must be above 0.
SyncPlan plan_sync(const SyncFacts& facts, double target_share);

// Returns how many connections two of these sites need (wan/link/lanes.h); nullopt if an uplink is
// unknown.
std::optional<int64_t> lanes_for(std::span<const SiteKnowledge> sites);

// Returns the settings to change `now` to: codec, fragments and delay. Lanes stay, since they are
// already connected. Returns nullopt if `now` is good enough.
//
// Links are assumed a fifth slower than in `facts`, so that the new sync meets the target on a line
// that varies. While `now` meets the target, it stays unless another sync that does too has at most
// half its loss. If `now` misses the target, its replacement must expose a fifth less. So the link
// figures must change by more than a fifth before a choice is replaced and then restored. A codec
// that plan_sync() does not use counts with the loss of the next coarser one.
std::optional<SyncPlan> better_sync(const SyncFacts& facts, double target_share,
                                    const outer_optimizer::SyncConfig& now);

// Returns the figures of a sync by `now`, without a reason.
SyncPlan sync_by(const SyncFacts& facts, const outer_optimizer::SyncConfig& now);

// Returns `now` with the plan's codec, fragments and delay.
outer_optimizer::SyncConfig changed_to(const outer_optimizer::SyncConfig& now,
                                       const SyncPlan& plan);

// Returns the time of a fragment's sync: two round trips to the coordinator, a reduce-scatter and
// all-gather over links like the worst ones (wan/link/link_time.h), and some passes over its values
// in memory.
double fragment_sync_seconds(const SyncFacts& facts, outer_optimizer::CodecKind codec,
                             int64_t fragments);

}  // namespace farstep::heterogeneity
