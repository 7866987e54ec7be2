#include "trainer/run/train_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/run/evaluate.h"
#include "trainer/run/round_log.h"
#include "trainer/run/train_step.h"

namespace farstep {

namespace {

constexpr int kExitInterrupted = 130;

// Swaps theta_global and the model's theta_local, where they are not the same.
void swap_global_and_local(Session& session) {
  if (session.strategy().local_is_global()) return;
  auto& mirror = session.model().parameters().host_values();
  std::ranges::swap_ranges(mirror.pull(), session.strategy().theta_global());
  mirror.push();
}

void evaluate_if_due(Session& session) {
  const auto& config = session.run().evaluate;
  const int64_t rounds_done = session.position.rounds_done;
  const bool due = config.every_rounds > 0 && (rounds_done % config.every_rounds == 0 ||
                                               rounds_done == session.run().outer.rounds);
  if (!due) return;
  session.member().set_activity(rounds_done, 0, "evaluating");
  const auto span = session.recorder().span(SpanCause::kEvaluate, rounds_done);
  swap_global_and_local(session);  // a replica's loss says little of what the sites share
  const auto result = evaluate(session.model(), session.validation_data(),
                               {.sequence_length = session.run().data.sequence_length,
                                .windows = config.windows,
                                .share = static_cast<int64_t>(session.site_id()),
                                .num_shares = session.transport().size(),
                                .batch = session.own_plan().micro_batch});
  swap_global_and_local(session);
  session.recorder().record(
      EvaluationEvent{.round = rounds_done, .loss_sum = result.loss_sum, .tokens = result.tokens});
}

void save_if_due(Session& session) {
  const int64_t rounds_done = session.position.rounds_done;
  if (rounds_done % session.run().checkpoint.every_rounds == 0 ||
      rounds_done == session.run().outer.rounds) {
    session.save_checkpoint();
  }
}

// Whether the round has another inner step.
bool wants_step(Session& session) {
  const auto& config = session.run().plan;
  const auto& plan = session.own_plan();
  const auto round_seconds = session.plan().round_seconds;
  const int64_t steps_done = session.position.steps_done;
  if (config.round_end == RoundEnd::kSteps || !round_seconds) return steps_done < plan.local_steps;
  if (steps_done == 0) return true;
  if (steps_done >= plan.most_steps) return false;
  const auto& timer = session.timer();
  const double step_seconds =
      timer.step_seconds() > 0 ? timer.step_seconds() : plan.step_seconds.value_or(0);
  // A step that is under way has only begun.
  const double spent_seconds =
      timer.elapsed_seconds() + (session.step_under_way ? step_seconds : 0);
  return has_room_for_step(*round_seconds, spent_seconds, step_seconds,
                           config.slack_fraction * *round_seconds);
}

// What the site has done of the round.
Contribution work_so_far(Session& session) {
  const auto& plan = session.own_plan();
  return {.batch = plan.batch,
          .round_steps = session.position.steps_done,
          .micro_batch = plan.micro_batch,
          .step_seconds = session.timer().step_seconds(),
          .overhead_seconds = session.timer().overhead_seconds(),
          .fragments = session.strategy().sync_config().fragments,
          .uplink_bits_per_second = session.links().uplink().bits_per_second().value_or(0),
          .rtt_seconds = session.transport().uplink().rtt_seconds};
}

// Sends and applies what is due; with `round_ends`, all that is left. False if a stop was asked for
// before.
bool sync_due(Session& session, bool round_ends, RoundLog& log, const std::stop_token& stop) {
  const auto synced =
      session.strategy().sync(work_so_far(session), round_ends, session.theta_local(), stop);
  for (const auto& sync : synced.applied) {
    session.timer().add_wait(sync.exposed_wait_seconds + sync.exposed_wan_seconds);
    log.add(sync);
  }
  return !synced.is_stopped;
}

// Whether the site ends here, between two steps: a stop was asked for or a peer is lost, which then
// throws. What all sites have begun is finished first, so that it counts at all or at none.
bool ends_here(Session& session, const std::stop_token& stop) {
  if (!stop.stop_requested() && !session.member().has_failed()) return false;
  if (!session.strategy().try_give_up()) return false;
  session.member().throw_if_failed();
  return true;
}

// Ends the round: all that is left is applied. False if a stop was asked for before.
bool end_round(Session& session, RoundLog& log, const std::stop_token& stop) {
  const double began = session.clock().now_seconds();
  const double waited_before = session.timer().waited_seconds();
  if (!sync_due(session, true, log, stop)) return false;
  const double waited_seconds = session.timer().waited_seconds() - waited_before;
  const double own_seconds = session.clock().now_seconds() - began - waited_seconds;
  log.finish();
  session.advance_to_next_round(log.newest_sync());
  session.timer().start_round(std::max(0.0, own_seconds));
  return true;
}

// One outer round, as ARCHITECTURE.md tells it. False if a stop was asked for before its end.
bool run_round(Session& session, const std::stop_token& stop) {
  auto& position = session.position;
  const auto& plan = session.own_plan();
  const int64_t round = position.rounds_done + 1;
  RoundLog log(session);

  session.recorder().record(PlanEvent{.round = round,
                                      .local_steps = plan.local_steps,
                                      .batch = plan.batch,
                                      .micro_batch = plan.micro_batch,
                                      .reason = plan.reason,
                                      .step_seconds = plan.step_seconds,
                                      .idle_seconds = plan.idle_seconds});
  session.loader().start_round(position.data, range_begin(session.plan(), session.site_id()),
                               position.steps_done * plan.batch, plan.batch);
  session.strategy().begin_round(round, plan.local_steps);
  if (!sync_due(session, false, log, stop)) return false;  // what an interruption left
  while (wants_step(session)) {
    if (ends_here(session, stop)) return false;
    session.member().set_activity(round, position.steps_done + 1, "training");
    take_step(session);
    if (!sync_due(session, false, log, stop)) return false;
  }
  finish_step(session);
  session.member().set_activity(round, position.steps_done, "at the sync");
  if (!end_round(session, log, stop)) return false;

  evaluate_if_due(session);
  save_if_due(session);
  return true;
}

void train_to_the_end(Session& session, const std::stop_token& stop) {
  if (session.position.rounds_done == 0 && session.position.steps_done == 0) {
    evaluate_if_due(session);
    session.save_checkpoint();
    session.timer().start_round(0);
  }
  while (session.position.rounds_done < session.run().outer.rounds) {
    if (!run_round(session, stop)) return;
  }
}

}  // namespace

int train(Session& session, const std::stop_token& stop) {
  try {
    train_to_the_end(session, stop);
    if (session.position.rounds_done == session.run().outer.rounds) {
      session.leave(EndOutcome::kDone, "");
      return 0;
    }
    finish_step(session);
    session.save_checkpoint();
    session.leave(EndOutcome::kInterrupted, "interrupted");
    return kExitInterrupted;
  } catch (const PeerError& error) {
    finish_step(session);
    session.save_checkpoint();
    // All sites that are interrupted at once leave one after the other: that is no loss.
    const bool interrupted = stop.stop_requested();
    session.leave(interrupted ? EndOutcome::kInterrupted : EndOutcome::kPeerLost, error.what());
    if (interrupted) return kExitInterrupted;
    throw;
  } catch (const std::exception& error) {
    session.leave(EndOutcome::kFailed, error.what());
    throw;
  }
}

}  // namespace farstep
