// Passes the plan of a round to the site and the strategy, and the round's timings to the planner.
#pragma once

#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/round/round_record.h"
#include "trainer/round/run.h"

namespace farstep {

// Returns the timing of the site's round so far, with its link figures, as the other sites receive
// it.
heterogeneity::RoundTiming timing_of(const Run& run);

// Begins a round by the present plan, at the site and at the strategy. Also continues a round after
// a resume or after a new plan for its rest. Returns false if a stop was requested before the due
// syncs had begun.
bool begin_round(Run& run, RoundRecord& record, const std::stop_token& stop);

// Counts a round that has ended and plans the next from the newest of `syncs`, which were applied
// in the round (RoundRecord::syncs()). If there is none, the plan stays.
void plan_next_round(Run& run, std::span<const SyncRecord> syncs);

// Does the same for a round whose sequences are counted.
void plan_after_round(Run& run, std::span<const SyncRecord> syncs);

// Returns a plan as the strategy checks it.
std::vector<PlannedWork> planned_work(const RunConfig& config,
                                      const heterogeneity::RoundPlan& plan);

// Plans for the members of the view that a committed sync of `round` has found, if that is newer.
// Records it, and the views between it and the last one.
void adopt_view(Run& run, int64_t round, int64_t generation,
                const std::vector<std::string>& members);

// Reserves the windows of a plan, that of the present round, for its sites.
void reserve_windows(Run& run, const heterogeneity::RoundPlan& plan);

// Does the same for the present plan, and counts this site's own sequences.
void count_sequences(Run& run);

// Changes how the sites sync, if the run lets the planner choose that and its figures favour other
// settings. Records the reason. Called between two rounds.
void retune(Run& run);

// Returns the timings of a sync's contributions, in the order of the view.
std::vector<heterogeneity::RoundTiming> timings_of(
    std::span<const wan::Contribution> contributions);

}  // namespace farstep
