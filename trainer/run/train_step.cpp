#include "trainer/run/train_step.h"

#include <algorithm>
#include <utility>

namespace farstep {

namespace {

// Lets the step that began at `began` last as long as its slowest device plays; returns how long
// each device worked on its share.
std::vector<double> end_step(Session& session, double began, std::span<const int64_t> shares,
                             const StepResult& result) {
  const double slowest = *std::ranges::max_element(result.device_seconds);
  // Sum of gradients and update: no device is done before.
  const double common_seconds = session.clock().now_seconds() - began - slowest;
  std::vector<double> device_seconds;
  for (std::size_t device = 0; device < shares.size(); ++device) {
    device_seconds.push_back(session.speeds()[device].step_lasts(
        result.device_seconds[device] + common_seconds, shares[device]));
  }
  session.clock().sleep_until(began + *std::ranges::max_element(device_seconds));
  return device_seconds;
}

// Records a step that has become `result`, of whose seconds the event tells.
void record(Session& session, StepEvent event, const StepResult& result) {
  session.timer().add_step(event.seconds);
  event.loss = result.loss;
  event.gradient_norm = result.gradient_norm;
  event.learning_rate = result.learning_rate;
  event.tokens = result.tokens;
  session.recorder().record(event);
  session.position.loss_sum += result.loss;
}

// A GPU's own clock tells what a step took that the host did not wait for.
void record_late(Session& session, StepEvent event, const StepResult& result) {
  event.seconds = result.device_seconds.front();
  event.start = std::max(event.start, session.clock().unix_seconds() - event.seconds);
  record(session, std::move(event), result);
}

// Takes a step that the host waits for, and records it.
void take_step_at_once(Session& session, const TokenBatch& batch, double progress,
                       StepEvent event) {
  const auto& plan = session.own_plan();
  const double began = session.clock().now_seconds();
  const auto& shares = session.balance().shares(plan.batch);
  const auto result = session.inner().run(batch, shares, plan.micro_batch, progress);
  const auto device_seconds = end_step(session, began, shares, result);
  session.balance().observe(device_seconds);
  event.seconds = session.clock().now_seconds() - began;
  if (device_seconds.size() > 1) event.device_seconds = device_seconds;
  record(session, std::move(event), result);
}

}  // namespace

void take_step(Session& session) {
  const auto& plan = session.own_plan();
  auto& position = session.position;
  const double share = std::min(
      1.0, static_cast<double>(position.steps_done) / static_cast<double>(plan.local_steps));
  const double progress = (static_cast<double>(position.rounds_done) + share) /
                          static_cast<double>(session.run().outer.rounds);
  StepEvent event{.round = position.rounds_done + 1, .step = position.steps_done + 1};

  const double asked = session.clock().now_seconds();
  const auto batch = session.loader().next(plan.batch);
  event.data_seconds = session.clock().now_seconds() - asked;
  event.start = session.clock().unix_seconds();
  const bool is_played = std::ranges::any_of(session.speeds(), &EmulatedSpeed::is_played);
  if (session.inner().may_be_late() && !is_played) {
    const auto before = session.inner().start(batch, session.balance().shares(plan.batch),
                                              plan.micro_batch, progress);
    if (before) record_late(session, *session.step_under_way, *before);
    session.step_under_way = std::move(event);
  } else {
    take_step_at_once(session, batch, progress, std::move(event));
  }
  session.strategy().count_step(batch.sequences * batch.length);
  ++position.steps_done;
}

void finish_step(Session& session) {
  const auto result = session.inner().finish();
  if (result) record_late(session, *std::exchange(session.step_under_way, std::nullopt), *result);
}

}  // namespace farstep
