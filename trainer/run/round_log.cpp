#include "trainer/run/round_log.h"

namespace farstep {

namespace {

int64_t difference(uint64_t after, uint64_t before) {
  return static_cast<int64_t>(after - before);
}

}  // namespace

RoundLog::RoundLog(Session& session)
    : session_(session), before_(traffic_so_far()), sent_bytes_(before_.payload.sent_bytes) {}

RoundLog::Traffic RoundLog::traffic_so_far() const {
  const auto& transport = session_.transport();
  Traffic traffic{.payload = {}, .sockets = transport.socket_bytes()};
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    const auto link = transport.counters(peer);
    traffic.payload.sent_bytes += link.sent_bytes;
    traffic.payload.received_bytes += link.received_bytes;
  }
  return traffic;
}

void RoundLog::add(const SyncRecord& sync) {
  const uint64_t sent_bytes = traffic_so_far().payload.sent_bytes;
  session_.recorder().record(SyncEvent{.round = sync.id.round,
                                       .fragment = sync.id.fragment,
                                       .wait_seconds = sync.wait_seconds,
                                       .wan_seconds = sync.wan_seconds,
                                       .exposed_wait_seconds = sync.exposed_wait_seconds,
                                       .exposed_wan_seconds = sync.exposed_wan_seconds,
                                       .bytes_sent = difference(sent_bytes, sent_bytes_)});
  sent_bytes_ = sent_bytes;
  last_sync_ = sync;
}

void RoundLog::finish() {
  const auto& plan = session_.own_plan();
  const auto& position = session_.position;
  const auto& timer = session_.timer();
  const auto now = traffic_so_far();
  const int64_t tokens = position.steps_done * plan.batch * session_.run().data.sequence_length;
  const double train_loss = position.loss_sum / static_cast<double>(position.steps_done);
  session_.recorder().record(RoundEvent{
      .round = position.rounds_done + 1,
      .generation = last_sync_.generation,
      .local_steps = position.steps_done,
      .batch = plan.batch,
      .micro_batch = plan.micro_batch,
      .tokens = tokens,
      .averaging_weight = last_sync_.averaging_weight,
      .theta_hash = last_sync_.theta_hash,
      .wan_bytes_sent = difference(now.payload.sent_bytes, before_.payload.sent_bytes),
      .wan_bytes_received = difference(now.payload.received_bytes, before_.payload.received_bytes),
      .socket_bytes_sent = difference(now.sockets.sent, before_.sockets.sent),
      .socket_bytes_received = difference(now.sockets.received, before_.sockets.received),
      .train_loss = train_loss});
  session_.member().report({.round = position.rounds_done + 1,
                            .train_loss = train_loss,
                            .tokens = tokens,
                            .compute_seconds = timer.compute_seconds(),
                            .idle_seconds = timer.waited_seconds() + timer.overhead_seconds()});
}

}  // namespace farstep
