#include "trainer/strategy/low_communication.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// What `num_fragments` equal fragments of `size` elements have to bring of the work that is in
// others: the mean over their elements.
std::vector<FragmentWork> redistributed(const std::vector<FragmentWork>& work, int64_t size,
                                        int64_t num_fragments) {
  std::vector<FragmentWork> result;
  for (int64_t to = 0; to < num_fragments; ++to) {
    const auto range = equal_part(size, static_cast<int>(to), static_cast<int>(num_fragments));
    double steps = 0, tokens = 0;
    for (std::size_t from = 0; from < work.size(); ++from) {
      const auto other = equal_part(size, static_cast<int>(from), static_cast<int>(work.size()));
      const auto common = static_cast<double>(std::max<int64_t>(
          0, std::min(range.end, other.end) - std::max(range.begin, other.begin)));
      steps += common * static_cast<double>(work[from].steps);
      tokens += common * static_cast<double>(work[from].tokens);
    }
    const auto elements = static_cast<double>(std::max<int64_t>(1, range.size()));
    result.push_back({std::llround(steps / elements), std::llround(tokens / elements)});
  }
  return result;
}

}  // namespace

LowCommunication::LowCommunication(const RunConfig& run, std::size_t site_id,
                                   std::span<const float> theta, std::vector<TensorPlace> tensors,
                                   const Surroundings& surroundings)
    : base_steps_(run.plan.base_steps),
      recorder_(surroundings.recorder),
      sync_(run, site_id, theta, std::move(tensors), surroundings) {
  progress_.work.resize(static_cast<std::size_t>(num_fragments()));
}

void LowCommunication::retune(const SyncConfig& sync, std::span<const double> shares) {
  FARSTEP_CHECK(!schedule_ && progress_.fragments_applied == 0 && !progress_.sent,
                "a round is under way");
  FARSTEP_CHECK(!sync.eager, "this run is not eager");
  sync_.retune(sync, shares);
  progress_.work = redistributed(progress_.work, std::ssize(theta_global()), num_fragments());
}

void LowCommunication::begin_round(int64_t round, int64_t local_steps) {
  const auto& config = sync_.config();
  round_ = round;
  local_steps_ = local_steps;
  schedule_.emplace(local_steps, config.fragments, config.delay_steps, base_steps_);
}

void LowCommunication::count_step(int64_t tokens) {
  for (auto& work : progress_.work) {
    ++work.steps;
    work.tokens += tokens;
  }
}

Synced LowCommunication::sync(const Contribution& so_far, bool round_ends, LocalTheta& theta,
                              const std::stop_token& stop) {
  FARSTEP_CHECK(schedule_, "no round has begun");
  // What is planned for the round's last step is done when the round ends, be that earlier or
  // later.
  const auto is_due = [&](int64_t step) {
    return round_ends || (step <= so_far.round_steps && step < local_steps_);
  };
  Synced synced;
  auto& applied = progress_.fragments_applied;
  while (applied < num_fragments()) {
    if (!sync_.is_under_way()) {
      if (!progress_.sent && !is_due(schedule_->send_step(applied))) break;
      synced.is_stopped = stop.stop_requested();
      if (synced.is_stopped) return synced;
      send(so_far, theta);
    }
    if (!is_due(schedule_->apply_step(applied))) break;
    auto record = apply(theta, stop);
    synced.is_stopped = !record;
    if (!record) return synced;
    synced.applied.push_back(std::move(*record));
  }
  if (round_ends) {
    applied = 0;
    progress_.is_mixed = sync_.config().alpha > 0;
    sync_.drop_spent_residuals();
    schedule_.reset();
  }
  return synced;
}

void LowCommunication::send(const Contribution& so_far, LocalTheta& theta) {
  auto span = recorder_.span(SpanCause::kOuter, round_);
  const SyncId id{.round = round_, .fragment = progress_.fragments_applied};
  const auto range = sync_.fragment_range(id.fragment);
  const bool is_delayed = sync_.config().delay_steps > 0;
  const bool is_taken = progress_.sent.has_value();  // before an interruption
  Contribution contribution = is_taken ? *progress_.sent : so_far;
  std::span<const float> local;
  if (!is_taken) {
    const auto& work = progress_.work[static_cast<std::size_t>(id.fragment)];
    contribution.steps = work.steps;
    contribution.tokens = work.tokens;
    if (is_delayed) {  // theta_local will not be what it was
      theta.start_pull(range);
      progress_.sent = contribution;
    } else {
      local = theta.pull(range);
    }
  }
  const auto take_delta = [=, this, &theta](std::span<float> delta) {
    if (is_delayed && !is_taken) {
      const auto pulled = theta.finish_pull();
      sent_theta_.assign(pulled.begin(), pulled.end());
    }
    const int64_t bad =
        sync_.outer().delta(range, is_delayed ? std::span<const float>(sent_theta_) : local, delta);
    if (bad >= 0) sync_.refuse_delta(id, bad);
  };
  const auto apply_mean = [this, range](std::span<const float> mean) {
    sync_.outer().apply(range, mean);
  };
  sync_.send(id, contribution, {.take_delta = take_delta, .apply_mean = apply_mean});
  span.finish();
}

std::optional<SyncRecord> LowCommunication::apply(LocalTheta& theta, const std::stop_token& stop) {
  auto record = sync_.receive(round_, stop);
  if (record) adopt_global(record->id.fragment, theta);
  return record;
}

void LowCommunication::adopt_global(int64_t fragment, LocalTheta& theta) {
  auto span = recorder_.span(SpanCause::kOuter, round_);
  const auto range = sync_.fragment_range(fragment);
  const double alpha = sync_.config().alpha;
  if (alpha > 0) {
    const auto local = theta.pull(range);
    sync_.outer().merge(range, static_cast<float>(alpha), local);
    theta.push(range, local);
    progress_.is_mixed = true;
  } else {
    theta.push(range, part(theta_global(), range));
  }
  progress_.work[static_cast<std::size_t>(fragment)] = {};
  progress_.sent.reset();
  ++progress_.fragments_applied;
  ++progress_.syncs_done;
  span.finish();
}

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
  if (std::ssize(progress.work) != num_fragments() ||
      progress.fragments_applied >= num_fragments()) {
    throw DataError(
        fmt::format("the checkpoint is of a run of {} fragments, {} of them applied; "
                    "this run has {}",
                    progress.work.size(), progress.fragments_applied, num_fragments()));
  }
  progress_ = std::move(progress);
  const auto range = sync_.fragment_range(progress_.fragments_applied);
  sent_theta_.resize(progress_.sent ? static_cast<std::size_t>(range.size()) : 0);
}

NamedBuffers LowCommunication::own_buffers() {
  NamedBuffers buffers;
  sync_.add_residuals_to(buffers);
  if (progress_.sent) buffers.push_back(f32_buffer("sent_theta", sent_theta_));
  return buffers;
}

}  // namespace farstep
