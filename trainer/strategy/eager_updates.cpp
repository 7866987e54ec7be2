// The offset takes this site's delta when it is sent, with the weight that it will have in the
// mean. It gives the delta back when that mean comes, a round later. So no site waits for a sync.
#include "trainer/strategy/eager_updates.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// With several fragments or a delay there would be two ways to hide a sync. alpha would mix
// theta_local with a theta_global that lacks its newest delta.
bool is_eager(const outer_optimizer::SyncConfig& sync) {
  return sync.fragments == 1 && sync.delay_steps == 0 && sync.alpha == 0;
}

// The offset has taken Nesterov steps by this site's own deltas. Only the same steps by the means
// take them out again.
StrategySettings with_nesterov_alone(StrategySettings settings) {
  settings.outer.mean_rounds = 0;
  return settings;
}

}  // namespace

EagerUpdates::EagerUpdates(const StrategySettings& settings, const View& view, StartValues values,
                           const Surroundings& surroundings)
    : rounds_(settings.outer.rounds),
      settings_{.learning_rate = static_cast<float>(settings.outer.learning_rate),
                .momentum = static_cast<float>(settings.outer.momentum)},
      recorder_(surroundings.recorder),
      offset_(values.theta.size()),
      offset_momentum_(values.theta.size()),
      sent_delta_(values.theta.size()),
      sync_(with_nesterov_alone(settings), view, std::move(values), surroundings) {
  progress_.coefficient = 1.0 / static_cast<double>(view.size());
}

void EagerUpdates::check(const StrategySettings& settings, const JsonPath& path) {
  if (is_eager(settings.sync)) return;
  path.member("kind").fail(
      "an eager update is of the whole model and lasts a whole round: sync.fragments must be 1, "
      "sync.delay_steps and sync.alpha 0");
}

void EagerUpdates::retune(const outer_optimizer::SyncConfig& sync, std::span<const double> shares) {
  FARSTEP_CHECK(!start_, "a round is under way");
  FARSTEP_CHECK(is_eager(sync), "this run is eager");
  sync_.retune(sync, shares);
}

Synced EagerUpdates::begin(const RoundStart& start, const heterogeneity::RoundTiming& /*so_far*/,
                           const std::stop_token& stop) {
  start_ = start;
  sync_.meet(start.view, *start.exchanges);
  // A sync must not begin before the measuring sync: coordinator and sites take one sync after the
  // other.
  return {.applied = {}, .is_stopped = !start.is_measuring && !send_if_due(stop)};
}

Synced EagerUpdates::after_step(double learning_rate, const heterogeneity::RoundTiming& /*so_far*/,
                                const std::stop_token& /*stop*/) {
  FARSTEP_CHECK(start_, "no round has begun");
  progress_.work.add_step(start_->tokens_per_step, learning_rate);
  return {};
}

Synced EagerUpdates::end(const heterogeneity::RoundTiming& so_far, const std::stop_token& stop) {
  FARSTEP_CHECK(start_, "no round has begun");
  Synced synced{.applied = {}, .is_stopped = true};
  if (!send_if_due(stop)) return synced;  // again, if settle() gave it up
  // A resumed last round may have taken its step already, and only wait for its sync.
  if (progress_.sent_round < start_->round) {
    if (has_sent() && !receive(stop)) return synced;
    if (progress_.received) synced.applied.push_back(*progress_.received);
    synced.begins_anew =
        progress_.received && leaves_out(progress_.received->outliers, start_->view.own_name());
    if (synced.begins_anew) {
      drop_round();
    } else {
      step(so_far);
    }
  }
  // After the last round nothing is left to hide the last sync, so the site waits for it.
  if (start_->round == rounds_) {
    if (!progress_.received && !sync_.is_under_way()) send();
    if (!receive(stop)) return synced;
    synced.applied.push_back(*progress_.received);
    adopt_global();
  } else if (so_far.is_leaving) {
    hand_in(stop);
  }
  start_.reset();
  synced.is_stopped = false;
  return synced;
}

bool EagerUpdates::send_if_due(const std::stop_token& stop) {
  if (!has_sent() || progress_.received || sync_.is_under_way()) return true;
  if (stop.stop_requested()) return false;
  send();
  return true;
}

void EagerUpdates::send() {
  auto span = recorder_.span(SpanCause::kOuter, start_->round);
  // theta_global changes only at the round's end, so the sync's hash covers the theta_global that
  // this round's deltas refer to.
  const wan::SyncId id{.round = progress_.sent_round, .fragment = 0};
  sync_.send(id, *progress_.sent,
             {.take_delta =
                  [this](std::span<float> delta) { std::ranges::copy(sent_delta_, delta.begin()); },
              .check_plan =
                  [planned = sent_plan_](const wan::Go& go) {
                    if (planned.empty()) return;  // unknown after a resume
                    check_planned(go, planned,
                                  [](const PlannedWork& plan) { return plan.local_steps; });
                  },
              .applies_mean = false});
  span.finish();
}

bool EagerUpdates::receive(const std::stop_token& stop) {
  if (progress_.received) return true;
  progress_.received = sync_.receive(start_->round, stop);
  if (!progress_.received) return false;
  ++progress_.syncs_done;
  return true;
}

void EagerUpdates::step(const heterogeneity::RoundTiming& so_far) {
  auto span = recorder_.span(SpanCause::kOuter, start_->round);
  const auto global = theta_global();
  // All values are checked before any state changes. The checkpoint of the failing site then has
  // the state before.
  const auto local = theta().pull(whole());
  for (std::size_t k = 0; k < local.size(); ++k) {
    if (!std::isfinite((global[k] + offset_[k]) - local[k])) {
      sync_.refuse_delta({.round = start_->round, .fragment = 0}, static_cast<int64_t>(k));
    }
  }
  // A delta is taken out of the offset with the weight with which it came in. With the newer weight
  // a part of it would stay in the offset for ever.
  const auto before = static_cast<float>(progress_.coefficient);
  // A newcomer's first delta had no weight, which says nothing of the next one's.
  const bool has_weight = progress_.received && progress_.received->averaging_weight > 0;
  if (has_weight) progress_.coefficient = progress_.received->averaging_weight;
  const auto now = static_cast<float>(progress_.coefficient);
  for (std::size_t k = 0; k < local.size(); ++k) {
    const float delta = (global[k] + offset_[k]) - local[k];
    // The pulled copy becomes the gradient of the offset's step, so that no other array of the
    // model's size is needed.
    local[k] = now * delta - before * sent_delta_[k];
    sent_delta_[k] = delta;
  }
  take_outer_step(outer_optimizer::OuterStep::kNesterov, settings_, local, offset_,
                  offset_momentum_);
  if (progress_.received) sync_.apply(progress_.received->id, sync_.values(0));
  for (std::size_t k = 0; k < local.size(); ++k) local[k] = global[k] + offset_[k];
  theta().push(whole(), local);

  progress_.work.batch = so_far.batch;
  progress_.work.missing_steps = start_->planned[start_->view.self].left_out_steps;
  progress_.sent = wan::Contribution{.work = progress_.work, .timing = so_far, .fragments = 1};
  progress_.sent_round = start_->round;
  sent_plan_ = start_->planned;
  progress_.work = {};
  progress_.received.reset();
  sync_.drop_spent_residuals();
  span.finish();
}

// Its steps began from the weights whose delta was out of proportion.
void EagerUpdates::drop_round() {
  auto span = recorder_.span(SpanCause::kOuter, start_->round);
  sync_.apply(progress_.received->id, sync_.values(0));
  begin_anew();
  sync_.begin_anew();
  theta().push(whole(), theta_global());
  bring_nothing(start_->round);
  sent_plan_ = start_->planned;
  sync_.drop_spent_residuals();
  span.finish();
}

// The round is done in either case: its mean is applied at the end of the next one.
void EagerUpdates::hand_in(const std::stop_token& stop) {
  if (send_if_due(stop) && receive(stop)) return;
  spdlog::warn("the other sites have not come in time: they go on without the delta of round {}",
               start_->round);
}

void EagerUpdates::adopt_global() {
  auto span = recorder_.span(SpanCause::kOuter, start_->round);
  sync_.apply(progress_.received->id, sync_.values(0));
  // theta_global has all deltas now, so the offset, which stood in for the missing ones, ends.
  theta().push(whole(), theta_global());
  begin_anew();
  span.finish();
}

// In this round the members sync the round before. After it they sync this one, in which this site
// trains nothing either: so it sends a delta of zeros twice, without weight.
Synced EagerUpdates::attend(const RoundStart& start, const std::stop_token& stop) {
  FARSTEP_CHECK(!start_, "a round is under way");
  start_ = start;
  sync_.meet(start.view, *start.exchanges);
  begin_anew();
  sync_.begin_anew();
  progress_.coefficient = 1.0 / static_cast<double>(start.view.size());
  sent_plan_.clear();  // of the round before, which this site did not plan
  Synced synced;
  try {
    bring_nothing(start.round - 1);
    synced.is_stopped = !attend_sync(synced, stop);
    bring_nothing(start.round);
    sent_plan_ = start.planned;
    // Of the last round there is no next one that would hide the sync.
    if (!synced.is_stopped && start.round == rounds_) {
      synced.is_stopped = !attend_sync(synced, stop);
      begin_anew();
    }
  } catch (...) {
    start_.reset();  // a newer state can be taken
    throw;
  }
  theta().push(whole(), theta_global());
  start_.reset();
  return synced;
}

void EagerUpdates::bring_nothing(int64_t round) {
  progress_.sent = wan::Contribution{.work = {}, .timing = {}, .fragments = 1};
  progress_.sent_round = round;
}

bool EagerUpdates::attend_sync(Synced& synced, const std::stop_token& stop) {
  send();
  if (!receive(stop)) return false;
  sync_.apply(progress_.received->id, sync_.values(0));
  synced.applied.push_back(*std::exchange(progress_.received, std::nullopt));
  sync_.drop_spent_residuals();
  return true;
}

void EagerUpdates::begin_anew() {
  progress_.work = {};
  progress_.sent.reset();
  progress_.received.reset();
  for (auto* values : {&offset_, &offset_momentum_, &sent_delta_}) {
    std::ranges::fill(*values, 0.0F);
  }
}

void EagerUpdates::settle() {
  if (!sync_.try_give_up()) receive({});
}

// ---- checkpoints ----

Json EagerUpdates::state() const {
  auto progress = progress_;
  progress.sync = sync_.state();
  return to_json(progress);
}

void EagerUpdates::restore(const Json& state) {
  auto progress = read_progress<EagerProgress>(state);
  if (progress.sync.tuning && !is_eager(progress.sync.tuning->sync)) {
    throw DataError("strategy.sync.tuning.sync: not of a run with eager updates");
  }
  progress_ = std::move(progress);
  sync_.restore(progress_.sync);
  // Its generation was counted by another coordinator.
  if (progress_.received) progress_.received->generation = 0;
}

NamedBuffers EagerUpdates::own_buffers() {
  NamedBuffers buffers{f32_buffer("offset", offset_),
                       f32_buffer("offset_momentum", offset_momentum_),
                       f32_buffer("sent_delta", sent_delta_)};
  if (progress_.received) buffers.push_back(f32_buffer("received_mean", sync_.values(0)));
  sync_.add_residuals_to(buffers);
  return buffers;
}

std::optional<uint64_t> EagerUpdates::pending_checksum() {
  if (!progress_.received) return std::nullopt;
  return sync_.checksum_after(progress_.received->id, sync_.values(0));
}

void EagerUpdates::drop_steps(std::span<float> theta_local) {
  FARSTEP_CHECK(!start_, "a round is under way");
  progress_.work = {};
  const auto global = theta_global();
  for (std::size_t k = 0; k < theta_local.size(); ++k) theta_local[k] = global[k] + offset_[k];
}

// The sync of the round before is still due. With this delta of zeros from every site it changes
// nothing but the momentum.
void EagerUpdates::begin_from_global(std::span<float> theta_local) {
  FARSTEP_CHECK(!start_ && !progress_.received, "a round is under way");
  auto sent = std::move(progress_.sent);
  begin_anew();
  sync_.begin_anew();
  progress_.sent = std::move(sent);
  if (progress_.sent) progress_.sent->work.rates.reset();  // nobody is to judge such a delta
  std::ranges::copy(theta_global(), theta_local.begin());
}

}  // namespace farstep
