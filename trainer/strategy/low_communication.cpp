// Fragments take turns: each is sent at its step, exchanged behind training, and applied some steps
// later. `progress_` has all that a checkpoint must keep of it, also a delta that was sent. So a
// round can be interrupted between any two steps.
#include "trainer/strategy/low_communication.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Spreads the work of the old fragments over `num_fragments` equal fragments of `size` elements in
// all. Each gets the mean of the work over its elements. Fragments that were applied early in the
// round have trained since, and a new fragment overlaps several of them.
std::vector<outer_optimizer::Work> redistributed(const std::vector<outer_optimizer::Work>& work,
                                                 int64_t size, int64_t num_fragments) {
  std::vector<outer_optimizer::Work> result;
  for (int64_t to = 0; to < num_fragments; ++to) {
    const auto range =
        outer_optimizer::equal_part(size, static_cast<int>(to), static_cast<int>(num_fragments));
    double steps = 0, tokens = 0, missing = 0, rates = 0;
    bool knows_rates = true;
    for (std::size_t from = 0; from < work.size(); ++from) {
      const auto other =
          outer_optimizer::equal_part(size, static_cast<int>(from), static_cast<int>(work.size()));
      const auto common = static_cast<double>(std::max<int64_t>(
          0, std::min(range.end, other.end) - std::max(range.begin, other.begin)));
      steps += common * static_cast<double>(work[from].steps);
      tokens += common * static_cast<double>(work[from].tokens);
      missing += common * static_cast<double>(work[from].missing_steps);
      if (common > 0 && work[from].steps > 0) knows_rates &= work[from].rates.has_value();
      rates += common * work[from].rates.value_or(0);
    }
    const auto elements = static_cast<double>(std::max<int64_t>(1, range.size()));
    result.push_back({.steps = std::llround(steps / elements),
                      .tokens = std::llround(tokens / elements),
                      .missing_steps = std::llround(missing / elements)});
    if (knows_rates) result.back().rates = rates / elements;
  }
  return result;
}

// A run file that was changed since is the usual cause.
void require_fits(const SyncProgress& progress, int64_t num_fragments) {
  const auto saved = std::ssize(progress.work);
  if (saved != num_fragments) {
    throw DataError(
        fmt::format("strategy.work: is of a run whose model has {} fragments, and this run's has "
                    "{}",
                    saved, num_fragments));
  }
  const auto applied = progress.fragments_applied;
  if (applied >= num_fragments) {
    throw DataError(fmt::format("strategy.fragments_applied: is {}, of {} fragments in a round",
                                applied, num_fragments));
  }
  if (progress.received && progress.received->id.fragment != applied) {
    throw DataError(fmt::format("strategy.received: is of fragment {}, and fragment {} is the next",
                                progress.received->id.fragment, applied));
  }
}

}  // namespace

LowCommunication::LowCommunication(const StrategySettings& settings, const View& view,
                                   StartValues values, const Surroundings& surroundings)
    : base_steps_(settings.base_steps),
      recorder_(surroundings.recorder),
      sync_(settings, view, std::move(values), surroundings) {
  progress_.work.resize(static_cast<std::size_t>(num_fragments()));
}

void LowCommunication::retune(const outer_optimizer::SyncConfig& sync,
                              std::span<const double> shares) {
  FARSTEP_CHECK(!start_ && progress_.fragments_applied == 0 && !progress_.sent,
                "a round is under way");
  sync_.retune(sync, shares);
  progress_.work = redistributed(progress_.work, std::ssize(theta_global()), num_fragments());
}

outer_optimizer::FragmentSchedule LowCommunication::schedule_of(int64_t local_steps) const {
  const auto& config = sync_.config();
  return outer_optimizer::FragmentSchedule(local_steps, config.fragments, config.delay_steps,
                                           base_steps_);
}

Synced LowCommunication::begin(const RoundStart& start, const heterogeneity::RoundTiming& so_far,
                               const std::stop_token& stop) {
  FARSTEP_CHECK(start.is_measuring || start.view.self < start.planned.size(),
                "no plan for place {}: there are {} plans", start.view.self, start.planned.size());
  start_ = start;
  sync_.meet(start.view, *start.exchanges);
  if (!start.is_measuring && std::exchange(progress_.is_new, false)) count_missing_steps();
  return sync(so_far, false, stop);
}

// The others' deltas also have their steps since they applied the fragment in the round before.
void LowCommunication::count_missing_steps() {
  const int64_t local_steps = start_->planned[start_->view.self].local_steps;
  const auto schedule = schedule_of(local_steps);
  for (int64_t fragment = 0; fragment < num_fragments(); ++fragment) {
    progress_.work[static_cast<std::size_t>(fragment)].missing_steps =
        local_steps - schedule.apply_step(fragment);
  }
}

Synced LowCommunication::after_step(double learning_rate, const heterogeneity::RoundTiming& so_far,
                                    const std::stop_token& stop) {
  FARSTEP_CHECK(start_, "no round has begun");
  // Counted by fragment, since fragments are applied at different steps.
  for (auto& work : progress_.work) work.add_step(start_->tokens_per_step, learning_rate);
  return sync(so_far, false, stop);
}

Synced LowCommunication::end(const heterogeneity::RoundTiming& so_far,
                             const std::stop_token& stop) {
  FARSTEP_CHECK(start_, "no round has begun");
  return sync(so_far, true, stop);
}

Synced LowCommunication::sync(const heterogeneity::RoundTiming& so_far, bool round_ends,
                              const std::stop_token& stop) {
  Synced synced;
  if (start_->is_measuring) return synced;
  const int64_t local_steps = start_->planned[start_->view.self].local_steps;
  const auto schedule = schedule_of(local_steps);
  // Syncs that are planned for the round's last step wait for the round's end, which may be earlier
  // or later. With a deadline a site does not know its last step in advance.
  const auto is_due = [&](int64_t step) {
    return round_ends || (step <= so_far.steps && step < local_steps);
  };
  auto& applied = progress_.fragments_applied;
  while (applied < num_fragments()) {
    // A delta that was sent before an interruption is sent again as it was. The peers may have it
    // already.
    if (!sync_.is_under_way() && !progress_.received) {
      if (!progress_.sent && !is_due(schedule.send_step(applied))) break;
      synced.is_stopped = stop.stop_requested();
      if (synced.is_stopped) return synced;
      send(so_far);
    }
    if (!is_due(schedule.apply_step(applied))) break;
    synced.is_stopped = !receive(stop);
    if (synced.is_stopped) return synced;
    adopt_global(progress_.received->id.fragment);
    synced.applied.push_back(*std::exchange(progress_.received, std::nullopt));
    if (leaves_out(synced.applied.back().outliers, start_->view.own_name())) {
      begin_anew();
      synced.begins_anew = true;
    }
  }
  if (round_ends) {
    applied = 0;
    // With alpha theta_local keeps a part of its own, and is theta_global at no time.
    progress_.is_mixed = sync_.config().alpha > 0;
    sync_.drop_spent_residuals();
    start_.reset();
  }
  return synced;
}

void LowCommunication::send(const heterogeneity::RoundTiming& so_far) {
  auto span = recorder_.span(SpanCause::kOuter, start_->round);
  const wan::SyncId id{.round = start_->round, .fragment = progress_.fragments_applied};
  const auto range = sync_.fragment_range(id.fragment);
  const bool is_delayed = sync_.config().delay_steps > 0;
  const bool is_taken = progress_.sent.has_value();  // before an interruption
  // With a delay training changes theta_local while the worker reads, hence the copy. Without one
  // the training thread waits, and the memory is saved.
  wan::Contribution contribution;
  std::span<const float> local;
  if (is_taken) {
    contribution = *progress_.sent;
  } else {
    contribution = {.work = progress_.work[static_cast<std::size_t>(id.fragment)],
                    .timing = so_far,
                    .fragments = num_fragments()};
    contribution.work.batch = so_far.batch;
    const auto& planned = start_->planned[start_->view.self];
    contribution.work.missing_steps += planned.left_out_steps;
    if (so_far.is_leaving) {
      const int64_t due = schedule_of(planned.local_steps).send_step(id.fragment);
      contribution.work.missing_steps += std::max<int64_t>(0, due - so_far.steps);
    }
    if (is_delayed) {  // the worker reads it while training changes theta_local
      theta().start_pull(range);
      progress_.sent = contribution;
    } else {
      local = theta().pull(range);
    }
  }
  // The worker computes the delta. On the training thread, deltas, residuals and hashes took 2.1 s
  // of a round at 215M values (docs/results/wan_exchange.md).
  const auto take_delta = [=, this, theta = &theta(),
                           is_pulled = is_taken](std::span<float> delta) mutable {
    if (is_delayed && !is_pulled) {
      const auto pulled = theta->finish_pull();
      sent_theta_.assign(pulled.begin(), pulled.end());
      is_pulled = true;  // a sync that loses a site takes the delta once more
    }
    const int64_t bad =
        sync_.outer().delta(range, is_delayed ? std::span<const float>(sent_theta_) : local, delta);
    if (bad >= 0) sync_.refuse_delta(id, bad);
  };
  const auto check_plan = [=, this](const wan::Go& go) { check_work(go, id.fragment); };
  sync_.send(id, contribution, {.take_delta = take_delta, .check_plan = check_plan});
  span.finish();
}

bool LowCommunication::receive(const std::stop_token& stop) {
  if (progress_.received) return true;
  progress_.received = sync_.receive(start_->round, stop);
  if (!progress_.received) return false;
  // The delta is in theta_global.
  progress_.sent.reset();
  ++progress_.syncs_done;
  return true;
}

// The delta counts 0 in the mean, and the members see by its hash that this site's theta_global is
// theirs.
Synced LowCommunication::attend(const RoundStart& start, const std::stop_token& stop) {
  FARSTEP_CHECK(!start_ && progress_.fragments_applied == 0, "a round is under way");
  // The state may be another site's: what that one still had to apply is not this one's.
  progress_.sent.reset();
  progress_.received.reset();
  start_ = start;
  sync_.meet(start.view, *start.exchanges);
  sync_.begin_anew();
  Synced synced;
  try {
    synced = attend_syncs(stop);
  } catch (...) {
    start_.reset();  // a newer state can be taken
    throw;
  }
  if (synced.is_stopped) return synced;
  progress_.fragments_applied = 0;
  progress_.is_new = true;
  sync_.drop_spent_residuals();
  start_.reset();
  return synced;
}

Synced LowCommunication::attend_syncs(const std::stop_token& stop) {
  Synced synced;
  while (progress_.fragments_applied < num_fragments()) {
    const wan::SyncId id{.round = start_->round, .fragment = progress_.fragments_applied};
    const auto range = sync_.fragment_range(id.fragment);
    const auto take_delta = [](std::span<float> delta) { std::ranges::fill(delta, 0.0F); };
    const auto check_plan = [=, this](const wan::Go& go) { check_work(go, id.fragment); };
    sync_.send(id, {.fragments = num_fragments()},
               {.take_delta = take_delta, .check_plan = check_plan});
    synced.is_stopped = !receive(stop);
    if (synced.is_stopped) return synced;
    theta().push(range, part(theta_global(), range));
    ++progress_.fragments_applied;
    synced.applied.push_back(*std::exchange(progress_.received, std::nullopt));
  }
  return synced;
}

void LowCommunication::check_work(const wan::Go& go, int64_t fragment) const {
  check_planned(go, start_->planned, [&](const PlannedWork& plan) {
    return schedule_of(plan.local_steps).send_step(fragment);
  });
}

void LowCommunication::settle() {
  if (!sync_.try_give_up()) receive({});
}

void LowCommunication::adopt_global(int64_t fragment) {
  auto span = recorder_.span(SpanCause::kOuter, start_->round);
  const auto range = sync_.fragment_range(fragment);
  const double alpha = sync_.config().alpha;
  if (alpha > 0) {
    const auto local = theta().pull(range);
    sync_.outer().merge(range, static_cast<float>(alpha), local);
    theta().push(range, local);
    progress_.is_mixed = true;
  } else {
    theta().push(range, part(theta_global(), range));
  }
  // The fragment's next delta begins from here.
  progress_.work[static_cast<std::size_t>(fragment)] = {};
  ++progress_.fragments_applied;
  span.finish();
}

// The fault that spoiled one fragment may have reached the others through the model's steps.
void LowCommunication::begin_anew() {
  const outer_optimizer::Range all{0, std::ssize(theta_global())};
  theta().push(all, theta_global());
  for (auto& work : progress_.work) work = work.without_steps();
  progress_.is_mixed = false;
  sync_.begin_anew();
}

bool LowCommunication::is_before_syncs() const {
  return progress_.fragments_applied == 0 && !progress_.sent && !progress_.received &&
         !sync_.is_under_way();
}

// Then a checkpoint contains only one of the two.
bool LowCommunication::local_is_global() const {
  return !progress_.is_mixed &&
         std::ranges::all_of(progress_.work, [](const auto& work) { return work.steps == 0; });
}

// ---- checkpoints ----

Json LowCommunication::state() const {
  auto progress = progress_;
  progress.sync = sync_.state();
  return to_json(progress);
}

void LowCommunication::restore(const Json& state) {
  auto progress = read_progress<SyncProgress>(state);
  sync_.restore(progress.sync);
  require_fits(progress, num_fragments());
  progress_ = std::move(progress);
  // Its generation was counted by another coordinator.
  if (progress_.received) progress_.received->generation = 0;
  // The fragment that is not applied yet is the one that was sent.
  const auto range = sync_.fragment_range(progress_.fragments_applied);
  // The checkpoint is loaded into this memory.
  sent_theta_.resize(progress_.sent ? static_cast<std::size_t>(range.size()) : 0);
}

NamedBuffers LowCommunication::own_buffers() {
  NamedBuffers buffers;
  sync_.add_residuals_to(buffers);
  if (progress_.sent) buffers.push_back(f32_buffer("sent_theta", sent_theta_));
  return buffers;
}

void LowCommunication::drop_steps(std::span<float> theta_local) {
  FARSTEP_CHECK(!start_, "a round is under way");
  std::ranges::fill(progress_.work, outer_optimizer::Work{});
  progress_.is_mixed = false;
  progress_.sent.reset();
  sent_theta_.clear();
  std::ranges::copy(theta_global(), theta_local.begin());
}

void LowCommunication::begin_from_global(std::span<float> theta_local) {
  drop_steps(theta_local);
  sync_.begin_anew();
}

}  // namespace farstep
