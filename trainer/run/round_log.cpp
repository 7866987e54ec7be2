#include "trainer/run/round_log.h"

#include "trainer/base/checksum.h"

namespace farstep {

namespace {

int64_t difference(uint64_t after, uint64_t before) {
  return static_cast<int64_t>(after - before);
}

}  // namespace

RoundLog::RoundLog(Session& session)
    : session_(session), before_(session.uplink()), sent_bytes_(before_.sent_bytes) {
  const auto& transport = session.transport();
  for (int peer = 0; peer < transport.size(); ++peer) {
    links_before_.push_back(peer == transport.rank() ? LinkState{} : transport.link(peer));
  }
}

void RoundLog::add(const SyncRecord& sync) {
  session_.links().look();
  const uint64_t sent_bytes = session_.uplink().sent_bytes;
  session_.recorder().record(SyncEvent{.round = sync.id.round,
                                       .fragment = sync.id.fragment,
                                       .wait_seconds = sync.wait_seconds,
                                       .wan_seconds = sync.wan_seconds,
                                       .exposed_wait_seconds = sync.exposed_wait_seconds,
                                       .exposed_wan_seconds = sync.exposed_wan_seconds,
                                       .bytes_sent = difference(sent_bytes, sent_bytes_)});
  sent_bytes_ = sent_bytes;
  newest_sync_ = sync;
}

void RoundLog::finish() {
  const auto& plan = session_.own_plan();
  const auto& position = session_.position;
  const auto& timer = session_.timer();
  const auto now = session_.uplink();
  const int64_t tokens = position.steps_done * plan.batch * session_.run().data.sequence_length;
  const double train_loss = position.loss_sum / static_cast<double>(position.steps_done);
  session_.recorder().record(RoundEvent{
      .round = position.rounds_done + 1,
      .generation = newest_sync_ ? newest_sync_->generation : session_.generation(),
      .local_steps = position.steps_done,
      .batch = plan.batch,
      .micro_batch = plan.micro_batch,
      .tokens = tokens,
      .averaging_weight = newest_sync_ ? newest_sync_->averaging_weight : 0,
      .theta_hash = newest_sync_ ? newest_sync_->theta_hash : hash_of_theta_global(),
      .wan_bytes_sent = difference(now.sent_bytes, before_.sent_bytes),
      .wan_bytes_received = difference(now.received_bytes, before_.received_bytes),
      .socket_bytes_sent = difference(now.socket_sent_bytes, before_.socket_sent_bytes),
      .socket_bytes_received = difference(now.socket_received_bytes, before_.socket_received_bytes),
      .train_loss = train_loss});
  record_links();
  session_.member().report({.round = position.rounds_done + 1,
                            .train_loss = train_loss,
                            .tokens = tokens,
                            .compute_seconds = timer.compute_seconds(),
                            .idle_seconds = timer.waited_seconds() + timer.overhead_seconds()});
}

std::string RoundLog::hash_of_theta_global() const {
  return checksum_text(checksum(std::as_bytes(session_.strategy().theta_global())));
}

void RoundLog::record_links() {
  if (session_.run().sync.exchange == ExchangeKind::kRing) return;  // no link of its own carries it
  const auto& transport = session_.transport();
  const auto record = [&](std::optional<std::string> peer, const LinkState& link,
                          const LinkMeter& meter) {
    session_.recorder().record(LinkEvent{
        .round = session_.position.rounds_done + 1,
        .peer = std::move(peer),
        .bytes_sent = static_cast<int64_t>(link.sent_bytes),
        .bytes_received = static_cast<int64_t>(link.received_bytes),
        .socket_bytes_sent = static_cast<int64_t>(link.socket_sent_bytes),
        .retransmitted_bytes = static_cast<int64_t>(link.retransmitted_bytes),
        .sending_seconds = link.sending_seconds,
        .bits_per_second = meter.bits_per_second(),
        .rtt_seconds = link.rtt_seconds > 0 ? std::optional(link.rtt_seconds) : std::nullopt});
  };
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    record(transport.site(peer),
           since(links_before_[static_cast<std::size_t>(peer)], transport.link(peer)),
           session_.links().link(peer));
  }
  record(std::nullopt, since(before_, session_.uplink()), session_.links().uplink());
}

}  // namespace farstep
