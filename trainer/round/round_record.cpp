// Figures of a round are differences: of the links' totals since its beginning, and of the uplink's
// bytes since the sync before. So nothing has to be reset, and a resumed round counts from its
// resume.
#include "trainer/round/round_record.h"

#include <optional>

#include "trainer/base/checksum.h"
#include "trainer/round/round_plan.h"
#include "wan/transport/link_meter.h"

namespace farstep {

namespace {

int64_t difference(uint64_t after, uint64_t before) {
  return static_cast<int64_t>(after - before);
}

}  // namespace

RoundRecord::RoundRecord(Run& run)
    : run_(run), uplink_before_(run.peers.uplink()), sent_bytes_(uplink_before_.state.sent_bytes) {
  const auto links = run.peers.links();
  for (std::size_t place = 0; place < links.size(); ++place) {
    links_before_[run.peers.view().members[place]] = links[place].state;
  }
}

bool RoundRecord::add(const Synced& synced) {
  // No time of the site's own, as in add(SyncRecord).
  run_.site.timer().add_wait(synced.exposed_seconds);
  for (const auto& sync : synced.applied) add(sync);
  return !synced.is_stopped;
}

void RoundRecord::add(const SyncRecord& sync) {
  // The wait is not the site's own time, and must not make its next plan slower.
  run_.site.timer().add_wait(sync.exposed_wait_seconds + sync.exposed_wan_seconds);
  // The meters take the traffic since their last look, so a look after each sync is of that sync.
  run_.peers.measure_links();
  const uint64_t sent_bytes = run_.peers.uplink().state.sent_bytes;
  run_.recorder.record(SyncEvent{.round = sync.id.round,
                                 .fragment = sync.id.fragment,
                                 .wait_seconds = sync.wait_seconds,
                                 .wan_seconds = sync.wan_seconds,
                                 .exposed_wait_seconds = sync.exposed_wait_seconds,
                                 .exposed_wan_seconds = sync.exposed_wan_seconds,
                                 .bytes_sent = difference(sent_bytes, sent_bytes_),
                                 .saturated = sync.saturated});
  sent_bytes_ = sent_bytes;
  for (const auto& [site, is_left_out, reason] : sync.outliers) {
    run_.recorder.record(OutlierEvent{.round = sync.id.round,
                                      .fragment = sync.id.fragment,
                                      .delta_of = site,
                                      .is_left_out = is_left_out,
                                      .reason = reason});
  }
  if (!syncs_.empty() && syncs_.back().id.round == sync.id.round) syncs_.pop_back();
  syncs_.push_back(sync);
}

void RoundRecord::finish() {
  const auto& plan = run_.own_plan();
  const auto& timer = run_.site.timer();
  const auto before = uplink_before_.state, now = run_.peers.uplink().state;
  const int64_t steps = run_.site.steps_done();
  // The steps before the round was planned again may have had another batch.
  const auto& name = run_.peers.view().own_name();
  const int64_t sequences = run_.position.windows.reserved(run_.position.round(), name) +
                            (steps - plan.steps_before) * plan.batch;
  const int64_t tokens = sequences * run_.config.targets_per_example();
  const double train_loss = run_.site.loss_sum() / static_cast<double>(steps);
  const bool trains = plan.trains();
  const auto* newest = newest_sync();  // null: with eager updates a round may end without one
  // The planner learns the same from them when the round is recorded.
  const auto timings =
      newest ? timings_of(newest->contributions) : std::vector<heterogeneity::RoundTiming>();
  const auto round_noise = noise_of_round(timings);
  run_.recorder.record(RoundEvent{
      .round = run_.position.round(),
      .generation = newest ? newest->generation : run_.peers.view().generation,
      .local_steps = steps,
      .batch = plan.batch,
      .micro_batch = run_.site.micro_batch(),
      .tokens = tokens,
      .averaging_weight = newest ? newest->averaging_weight : 0,
      .theta_hash = newest ? newest->theta_hash : hash_of_theta_global(),
      .wan_bytes_sent = difference(now.sent_bytes, before.sent_bytes),
      .wan_bytes_received = difference(now.received_bytes, before.received_bytes),
      .socket_bytes_sent = difference(now.socket_sent_bytes, before.socket_sent_bytes),
      .socket_bytes_received = difference(now.socket_received_bytes, before.socket_received_bytes),
      .train_loss = trains ? std::optional(train_loss) : std::nullopt,
      .gradient_squared_norm = round_noise.mean_squared_norm(),
      .gradient_variance = round_noise.mean_variance(),
      .noise_scale = run_.planner.noise_with(timings).scale()});
  record_links();
  run_.peers.report(
      {.round = run_.position.round(),
       .train_loss = train_loss,
       .tokens = tokens,
       .compute_seconds = timer.compute_seconds(),
       .idle_seconds = trains ? timer.waited_seconds() + timer.overhead_seconds() : 0});
}

std::string RoundRecord::hash_of_theta_global() const {
  return checksum_text(checksum(std::as_bytes(run_.strategy.theta_global())));
}

void RoundRecord::record_links() {
  const auto record = [&](std::optional<std::string> peer, const wan::LinkState& before,
                          const LinkUse& now) {
    const auto link = since(before, now.state);
    run_.recorder.record(LinkEvent{
        .round = run_.position.round(),
        .peer = std::move(peer),
        .bytes_sent = static_cast<int64_t>(link.sent_bytes),
        .bytes_received = static_cast<int64_t>(link.received_bytes),
        .socket_bytes_sent = static_cast<int64_t>(link.socket_sent_bytes),
        .retransmitted_bytes = static_cast<int64_t>(link.retransmitted_bytes),
        .sending_seconds = link.sending_seconds,
        .bits_per_second = now.bits_per_second,
        .rtt_seconds = link.rtt_seconds > 0 ? std::optional(link.rtt_seconds) : std::nullopt});
  };
  const auto links = run_.peers.links();
  if (links.empty()) return;  // the connections of a ring belong to no pair of sites
  const auto& view = run_.peers.view();
  for (std::size_t place = 0; place < links.size(); ++place) {
    if (place == view.self) continue;
    record(view.members[place], links_before_[view.members[place]], links[place]);
  }
  record(std::nullopt, uplink_before_.state, run_.peers.uplink());
}

}  // namespace farstep
