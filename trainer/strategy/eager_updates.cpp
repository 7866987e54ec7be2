#include "trainer/strategy/eager_updates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

EagerUpdates::EagerUpdates(const RunConfig& run, std::size_t site_id, std::span<const float> theta,
                           std::vector<TensorPlace> tensors, const Surroundings& surroundings)
    : rounds_(run.outer.rounds),
      settings_{.learning_rate = static_cast<float>(run.outer.learning_rate),
                .momentum = static_cast<float>(run.outer.momentum)},
      recorder_(surroundings.recorder),
      offset_(theta.size()),
      offset_momentum_(theta.size()),
      sent_delta_(theta.size()),
      sync_(run, site_id, theta, std::move(tensors), surroundings) {
  progress_.coefficient = 1.0 / static_cast<double>(run.sites.size());
}

void EagerUpdates::retune(const SyncConfig& sync, std::span<const double> shares) {
  FARSTEP_CHECK(round_ == 0, "a round is under way");
  FARSTEP_CHECK(sync.eager && sync.fragments == 1 && sync.delay_steps == 0 && sync.alpha == 0,
                "this run is eager");
  sync_.retune(sync, shares);
}

void EagerUpdates::begin_round(int64_t round, int64_t /*local_steps*/) {
  round_ = round;
}

void EagerUpdates::count_step(int64_t tokens) {
  ++progress_.work.steps;
  progress_.work.tokens += tokens;
}

Synced EagerUpdates::sync(const Contribution& so_far, bool round_ends, LocalTheta& theta,
                          const std::stop_token& stop) {
  FARSTEP_CHECK(round_ > 0, "no round has begun");
  Synced synced;
  if (has_sent() && !progress_.received && !sync_.is_under_way()) {
    synced.is_stopped = stop.stop_requested();
    if (synced.is_stopped) return synced;
    send();
  }
  if (!round_ends) return synced;
  if (progress_.sent_round < round_) {
    synced.is_stopped = has_sent() && !receive(stop);
    if (synced.is_stopped) return synced;
    if (progress_.received) synced.applied.push_back(*progress_.received);
    step(so_far, theta);
  }
  if (round_ == rounds_) {
    if (!progress_.received && !sync_.is_under_way()) send();
    synced.is_stopped = !receive(stop);
    if (synced.is_stopped) return synced;
    synced.applied.push_back(*progress_.received);
    adopt_global(theta);
  }
  round_ = 0;
  return synced;
}

void EagerUpdates::send() {
  auto span = recorder_.span(SpanCause::kOuter, round_);
  // theta_global moves when the round ends: until then the deltas of this one count from it.
  sync_.send({.round = progress_.sent_round, .fragment = 0}, *progress_.sent,
             {.take_delta = [this](std::span<float> delta) {
               std::ranges::copy(sent_delta_, delta.begin());
             }});
  span.finish();
}

bool EagerUpdates::receive(const std::stop_token& stop) {
  if (progress_.received) return true;
  progress_.received = sync_.receive(round_, stop);
  if (!progress_.received) return false;
  ++progress_.syncs_done;
  return true;
}

void EagerUpdates::step(const Contribution& so_far, LocalTheta& theta) {
  auto span = recorder_.span(SpanCause::kOuter, round_);
  const auto global = theta_global();
  const auto local = theta.pull(whole());
  for (std::size_t k = 0; k < local.size(); ++k) {
    if (!std::isfinite((global[k] + offset_[k]) - local[k])) {
      sync_.refuse_delta({.round = round_, .fragment = 0}, static_cast<int64_t>(k));
    }
  }
  const auto before = static_cast<float>(progress_.coefficient);
  if (progress_.received) progress_.coefficient = progress_.received->averaging_weight;
  const auto now = static_cast<float>(progress_.coefficient);
  for (std::size_t k = 0; k < local.size(); ++k) {
    const float delta = (global[k] + offset_[k]) - local[k];
    local[k] = now * delta - before * sent_delta_[k];
    sent_delta_[k] = delta;
  }
  nesterov_step(settings_, local, offset_, offset_momentum_);
  if (progress_.received) sync_.outer().apply(whole(), sync_.values(0));
  for (std::size_t k = 0; k < local.size(); ++k) local[k] = global[k] + offset_[k];
  theta.push(whole(), local);

  progress_.sent = so_far;
  progress_.sent->steps = progress_.work.steps;
  progress_.sent->tokens = progress_.work.tokens;
  progress_.sent_round = round_;
  progress_.work = {};
  progress_.received.reset();
  sync_.drop_spent_residuals();
  span.finish();
}

void EagerUpdates::adopt_global(LocalTheta& theta) {
  auto span = recorder_.span(SpanCause::kOuter, round_);
  sync_.outer().apply(whole(), sync_.values(0));
  theta.push(whole(), theta_global());
  progress_.sent.reset();
  progress_.received.reset();
  for (auto* values : {&offset_, &offset_momentum_, &sent_delta_}) {
    std::ranges::fill(*values, 0.0F);
  }
  span.finish();
}

bool EagerUpdates::try_give_up() {
  if (sync_.try_give_up()) return true;
  return sync_.is_over() && receive({});
}

// ---- checkpoints ----

Json EagerUpdates::state() const {
  auto progress = progress_;
  progress.sync = sync_.state();
  return to_json(progress);
}

void EagerUpdates::restore(const Json& state) {
  progress_ = read_progress<EagerProgress>(state);
  sync_.restore(progress_.sync);
}

NamedBuffers EagerUpdates::own_buffers() {
  NamedBuffers buffers{f32_buffer("offset", offset_),
                       f32_buffer("offset_momentum", offset_momentum_),
                       f32_buffer("sent_delta", sent_delta_)};
  if (progress_.received) buffers.push_back(f32_buffer("received_mean", sync_.values(0)));
  sync_.add_residuals_to(buffers);
  return buffers;
}

}  // namespace farstep
