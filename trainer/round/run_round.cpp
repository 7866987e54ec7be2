// One outer round, as ARCHITECTURE.md tells it. A round can end early at three places: a stop
// between two steps, a lost peer, and the time to hand in. At each of them the state is whole and
// can be saved.
#include "trainer/round/run_round.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

#include "trainer/base/stopped.h"
#include "trainer/round/measuring.h"
#include "trainer/round/mid_round_handover.h"
#include "trainer/round/round_plan.h"
#include "trainer/round/round_record.h"
#include "trainer/round/validation.h"

namespace farstep {

namespace {

// Whether the round can end here with its syncs. A sync without a step brings nothing, and until
// the sites are measured there is none.
bool can_hand_in(const Run& run) {
  return run.site.steps_done() > 0 && run.plan().measuring_steps == 0;
}

// Returns what ends the site's waits for others in a sync.
const std::stop_token& end_of_waits(const Run& run, const RoundStop& stop) {
  return can_hand_in(run) ? stop.gives_up : stop.asked;
}

// Returns whether the site ends its round here because a stop was requested, and hands in what it
// has.
bool hands_in(const Run& run, const RoundStop& stop) {
  if (!stop.asked.stop_requested() || stop.gives_up.stop_requested()) return false;
  if (!can_hand_in(run)) return false;
  spdlog::info("round {} ends here after {} of {} steps, which wait for the other sites",
               run.position.round(), run.site.steps_done(), run.own_plan().local_steps);
  return true;
}

// Does the work that is due after a step. Returns false if a stop was requested before its end.
bool after_step(Run& run, RoundRecord& record, const RoundStop& stop) {
  const auto synced =
      run.strategy.after_step(run.site.learning_rate(), timing_of(run), end_of_waits(run, stop));
  if (synced.begins_anew) run.site.begin_anew();
  if (!record.add(synced)) return false;
  return !is_measured(run) || plan_rest_of_round(run, record, stop.asked);
}

// Returns whether the site ends between two steps because a stop was requested. Throws if a peer is
// lost. Before either, a sync under way is given up or finished.
bool ends_here(Run& run, const std::stop_token& stop) {
  if (!stop.stop_requested() && !run.peers.has_failed()) return false;
  run.strategy.settle();
  run.peers.throw_if_failed();
  return true;
}

// Hands the state after this sync to the newcomers of whom this site is the donor.
void hand_over(Run& run, const SyncRecord& sync) {
  std::vector<wan::Newcomer> own;
  std::ranges::copy_if(sync.newcomers, std::back_inserter(own), [&](const auto& newcomer) {
    return newcomer.donor == run.peers.view().own_name();
  });
  if (!own.empty()) run.handover.begin(run, sync.id.round, own);
}

// Ends the round and applies all syncs that are left. `is_leaving` tells the others that it ends
// early. Returns false if a stop was requested before.
bool end_round(Run& run, RoundRecord& record, bool is_leaving, const std::stop_token& stop) {
  // The last step may still run on a GPU, and its loss belongs to this round.
  run.site.finish();
  run.peers.set_activity(run.position.round(), run.site.steps_done(), "at the sync");
  // The outer step changes values that the checkpoint under way still reads. Also, the other sites
  // must not advance before this site has saved.
  run.checkpoints.finish(run);
  // The time that the site needs itself at the sync, such as copying, slows its next round and is
  // planned for.
  const double began = run.clock.now_seconds();
  const double waited_before = run.site.timer().waited_seconds();
  auto timing = timing_of(run);
  timing.is_leaving = is_leaving;
  const auto synced = run.strategy.end(timing, stop);
  if (synced.begins_anew) run.site.begin_anew();
  if (!record.add(synced)) return false;
  const double waited_seconds = run.site.timer().waited_seconds() - waited_before;
  const double own_seconds = run.clock.now_seconds() - began - waited_seconds;
  // Before the next plan replaces the one that this round is recorded with.
  record.finish();
  plan_next_round(run, record.syncs());
  run.site.end_round(std::max(0.0, own_seconds));
  heed_validation(run, record.syncs());
  if (const auto* newest = record.newest_sync()) hand_over(run, *newest);
  return true;
}

// Validates and saves between two rounds, if either is due. Returns false if a stop was requested
// before the end; it can be repeated after a resume.
bool validate_and_save(Run& run, const std::stop_token& stop) {
  auto& since = run.position.unvalidated_since;
  // theta_global is validated: it is better than any theta_local.
  if (!run.validator.run_if_due(run, *since, stop)) return false;
  since.reset();
  if (run.position.rounds_done % run.config.checkpoint.every_rounds == 0 ||
      run.position.rounds_done == rounds_before_decay(run.config.inner.rate, run.cycle) ||
      run.is_done()) {
    run.checkpoints.begin(run);
  }
  return true;
}

}  // namespace

bool run_round(Run& run, const RoundStop& stop) {
  const int64_t sequences_before = run.position.windows.pool().next();
  RoundRecord record(run);
  if (!begin_round(run, record, end_of_waits(run, stop))) return false;
  // A checkpoint may be from between the last measuring step and the measuring sync.
  if (is_measured(run) && !plan_rest_of_round(run, record, stop.asked)) return false;
  bool is_leaving = false;
  while (run.site.wants_step()) {
    is_leaving = hands_in(run, stop);
    if (is_leaving) break;
    if (ends_here(run, stop.asked)) return false;
    run.peers.set_activity(run.position.round(), run.site.steps_done() + 1, "training");
    auto* const gradients = run.strategy.gradients();
    try {
      // A step that all sites take together has begun at the others, and ends at all.
      run.site.step(gradients, gradients != nullptr ? std::stop_token() : stop.asked);
    } catch (const Stopped&) {
      continue;  // as if the step had not begun
    }
    // Records a checkpoint as soon as it is complete; nothing waits for it here.
    run.checkpoints.collect(run);
    if (!after_step(run, record, stop)) return false;
    if (!stop.asked.stop_requested()) hand_over_in_mid_round(run);
  }
  if (!end_round(run, record, is_leaving, end_of_waits(run, stop))) {
    if (is_leaving) spdlog::warn("the other sites have not come in time: they go on without it");
    return false;
  }
  run.position.unvalidated_since = sequences_before;
  return validate_and_save(run, stop.asked);
}

bool run_rounds(Run& run, const RoundStop& stop) {
  // The model at the start is evaluated and saved too. A run that ends in its first round can then
  // resume.
  if (run.position.rounds_done == 0 && run.site.steps_done() == 0) {
    run.position.unvalidated_since = 0;
  }
  if (run.position.unvalidated_since) {  // at the start, or after a resume
    if (!validate_and_save(run, stop.asked)) return false;
    run.site.end_round(0);
  }
  while (!run.is_done()) {
    // A round that was handed in is complete, and no other one begins.
    if (stop.asked.stop_requested() || !run_round(run, stop)) return false;
  }
  return true;
}

}  // namespace farstep
