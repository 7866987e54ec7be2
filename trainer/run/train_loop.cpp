#include "trainer/run/train_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/run/evaluate.h"

namespace farstep {

namespace {

constexpr int kExitInterrupted = 130;

// Takes one inner step and records it.
void take_step(Session& session) {
  const auto& plan = session.own_plan();
  auto& position = session.position;
  const double share =
      static_cast<double>(position.steps_done) / static_cast<double>(plan.local_steps);
  const double progress = (static_cast<double>(position.rounds_done) + share) /
                          static_cast<double>(session.run().outer.rounds);
  StepEvent event{.round = position.rounds_done + 1, .step = position.steps_done + 1};

  const double asked = session.clock().now_seconds();
  const auto batch = session.loader().next(plan.batch);
  event.data_seconds = session.clock().now_seconds() - asked;

  event.start = session.clock().unix_seconds();
  const double began = session.clock().now_seconds();
  const auto result = session.inner().run(batch, plan.micro_batch, progress);
  session.speed().end_step(began);
  event.seconds = session.clock().now_seconds() - began;
  event.loss = result.loss;
  event.gradient_norm = result.gradient_norm;
  event.learning_rate = result.learning_rate;
  event.tokens = result.tokens;
  session.recorder().record(event);
  ++position.steps_done;
  position.loss_sum += result.loss;
}

// What the sites' traffic was between two looks.
struct Traffic {
  LinkCounters payload;
  SocketBytes sockets;
};

Traffic traffic_so_far(const Session& session) {
  Traffic traffic{.payload = {}, .sockets = session.transport().socket_bytes()};
  for (int peer = 0; peer < session.transport().size(); ++peer) {
    if (peer == session.transport().rank()) continue;
    const auto link = session.transport().counters(peer);
    traffic.payload.sent_bytes += link.sent_bytes;
    traffic.payload.received_bytes += link.received_bytes;
  }
  return traffic;
}

void record_round(Session& session, const SyncRecord& sync, const Traffic& before) {
  const auto& plan = session.own_plan();
  const auto now = traffic_so_far(session);
  const auto difference = [](uint64_t after, uint64_t earlier) {
    return static_cast<int64_t>(after - earlier);
  };
  session.recorder().record(RoundEvent{
      .round = session.position.rounds_done + 1,
      .generation = sync.generation,
      .local_steps = plan.local_steps,
      .batch = plan.batch,
      .micro_batch = plan.micro_batch,
      .tokens = plan.sequences() * session.run().data.sequence_length,
      .averaging_weight = sync.averaging_weight,
      .theta_hash = sync.theta_hash,
      .wan_bytes_sent = difference(now.payload.sent_bytes, before.payload.sent_bytes),
      .wan_bytes_received = difference(now.payload.received_bytes, before.payload.received_bytes),
      .socket_bytes_sent = difference(now.sockets.sent, before.sockets.sent),
      .socket_bytes_received = difference(now.sockets.received, before.sockets.received),
      .train_loss = session.position.loss_sum / static_cast<double>(plan.local_steps)});
}

void evaluate_if_due(Session& session) {
  const auto& config = session.run().evaluate;
  const int64_t rounds_done = session.position.rounds_done;
  const bool due = config.every_rounds > 0 && (rounds_done % config.every_rounds == 0 ||
                                               rounds_done == session.run().outer.rounds);
  if (!due) return;
  session.member().set_activity(rounds_done, 0, "evaluating");
  const auto span = session.recorder().span(SpanCause::kEvaluate, rounds_done);
  const auto result = evaluate(session.model(), session.validation_data(),
                               {.sequence_length = session.run().data.sequence_length,
                                .windows = config.windows,
                                .share = static_cast<int64_t>(session.site_id()),
                                .num_shares = session.transport().size(),
                                .batch = session.own_plan().micro_batch});
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

// One outer round, as ARCHITECTURE.md tells it. False if a stop was asked for before its commit.
bool run_round(Session& session, const std::stop_token& stop) {
  auto& position = session.position;
  const auto& plan = session.own_plan();
  const int64_t round = position.rounds_done + 1;
  const auto traffic_before = traffic_so_far(session);

  session.loader().start_round(position.data, range_begin(session.plan(), session.site_id()),
                               position.steps_done * plan.batch, plan.batch);
  while (position.steps_done < plan.local_steps) {
    if (stop.stop_requested()) return false;
    session.member().throw_if_failed();
    session.member().set_activity(round, position.steps_done + 1, "training");
    take_step(session);
  }

  session.member().set_activity(round, plan.local_steps, "at the sync");
  const Work work{plan.local_steps, plan.batch,
                  plan.sequences() * session.run().data.sequence_length};
  auto& host_values = session.model().parameters().host_values();
  const auto sync = session.strategy().end_round(round, work, host_values.pull(), stop);
  if (!sync) return false;
  host_values.push();

  record_round(session, *sync, traffic_before);
  session.advance_to_next_round();
  evaluate_if_due(session);
  save_if_due(session);
  return true;
}

void train_to_the_end(Session& session, const std::stop_token& stop) {
  if (session.position.rounds_done == 0 && session.position.steps_done == 0) {
    evaluate_if_due(session);
    session.save_checkpoint();
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
    session.save_checkpoint();
    session.leave(EndOutcome::kInterrupted, "interrupted");
    return kExitInterrupted;
  } catch (const PeerError& error) {
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
