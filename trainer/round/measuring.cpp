// The measuring sync exchanges no values, only the step times. It goes the way of every other sync,
// so that a lost site, a stop and a resume need no rules of their own.
#include "trainer/round/measuring.h"

#include "trainer/base/checksum.h"
#include "trainer/round/round_plan.h"
#include "trainer/strategy/agreement.h"

namespace farstep {

bool is_measured(const Run& run) {
  const int64_t measuring_steps = run.plan().measuring_steps;
  return measuring_steps > 0 && run.site.steps_done() >= measuring_steps;
}

bool plan_rest_of_round(Run& run, RoundRecord& record, const std::stop_token& stop) {
  // The measured steps must be over; a GPU may still be at the last one.
  run.site.finish();
  const int64_t round = run.position.round();
  run.peers.set_activity(round, run.site.steps_done(), "waiting to be measured");
  auto timing = timing_of(run);
  timing.step_seconds = run.site.timer().measured_step_seconds();
  timing.overhead_seconds = 0;  // past, so no part of the rest of the round
  // Both hashes are of the same values: nothing is exchanged, the sync only carries the timings.
  const auto theta_hash = checksum_text(checksum(std::as_bytes(run.strategy.theta_global())));
  auto span =
      run.recorder.span(run.own_plan().trains() ? SpanCause::kWait : SpanCause::kServe, round);
  const auto go = agree(
      run.peers.rendezvous(), wan::kMeasuringSync, {.timing = timing}, theta_hash, theta_hash,
      [](const auto&) {}, stop);
  run.site.timer().add_wait(span.finish());
  if (!go) return false;
  // The rest of the round begins after the windows of the measured steps.
  count_sequences(run);
  ++run.position.measuring_syncs;
  adopt_view(run, round, go->generation, go->sites);
  run.planner.plan_rest(run.peers.view(), timings_of(go->contributions));
  return begin_round(run, record, stop);
}

}  // namespace farstep
