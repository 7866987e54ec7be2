#include "trainer/strategy/low_communication.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "outer_optimizer/schedule/averaging.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

std::span<float> part(std::span<float> values, const Range& range) {
  return values.subspan(static_cast<std::size_t>(range.begin),
                        static_cast<std::size_t>(range.size()));
}

std::vector<double> reduction_shares(const RunConfig& run) {
  if (run.sync.exchange != ExchangeKind::kParameterServer) {
    return std::vector<double>(run.sites.size(), 1);
  }
  std::vector<double> shares(run.sites.size(), 0);
  for (const auto& server : run.sync.servers) shares[run.site_id(server)] = 1;
  if (run.sync.servers.empty()) shares.front() = 1;
  return shares;
}

}  // namespace

LowCommunication::LowCommunication(const RunConfig& run, std::size_t site_id,
                                   std::span<const float> theta, std::vector<TensorPlace> tensors,
                                   bool has_feedback, const Surroundings& surroundings)
    : config_(run.outer),
      sync_(run.sync),
      base_steps_(run.plan.base_steps),
      site_id_(site_id),
      tensors_(std::move(tensors)),
      shares_(reduction_shares(run)),
      outside_(surroundings),
      outer_({.learning_rate = static_cast<float>(config_.learning_rate),
              .momentum = static_cast<float>(config_.momentum)},
             theta) {
  progress_.work.resize(static_cast<std::size_t>(sync_.fragments));
  const auto largest = fragment_range(sync_.fragments - 1).size();  // equal_part's last is
  values_.resize(static_cast<std::size_t>(largest));
  if (has_feedback) {
    residual_.resize(theta.size());
    next_residual_.resize(values_.size());
  }
}

LowCommunication::~LowCommunication() {
  if (flight_) flight_->give_up.request_stop();
}

void LowCommunication::begin_round(int64_t round, int64_t local_steps) {
  round_ = round;
  local_steps_ = local_steps;
  schedule_.emplace(local_steps, sync_.fragments, sync_.delay_steps, base_steps_);
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
  while (applied < sync_.fragments) {
    if (!flight_) {
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
  if (round_ends) applied = 0;
  return synced;
}

bool LowCommunication::try_give_up() {
  if (!flight_) return true;
  auto flight = std::exchange(flight_, std::nullopt);
  flight->give_up.request_stop();
  if (!flight->arrival.get().go) return true;
  const bool is_over =
      flight->outcome.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  if (is_over && !is_committed_) flight->outcome.get();  // throws what it failed with
  flight_ = std::move(flight);
  return false;
}

Range LowCommunication::fragment_range(int64_t fragment) const {
  return equal_part(std::ssize(outer_.theta_global()), static_cast<int>(fragment),
                    static_cast<int>(sync_.fragments));
}

std::vector<Range> LowCommunication::partitions(const Range& fragment) const {
  std::vector<int64_t> borders;
  for (const auto& tensor : tensors_) borders.push_back(tensor.begin);
  auto parts = sync_.partition == PartitionRule::kBytes
                   ? cut_by_shares(fragment, shares_)
                   : cut_at_borders(fragment, shares_, borders);
  for (auto& part : parts) part = {part.begin - fragment.begin, part.end - fragment.begin};
  return parts;
}

void LowCommunication::send(const Contribution& so_far, LocalTheta& theta) {
  auto span = outside_.recorder.span(SpanCause::kOuter, round_);
  const SyncId id{.round = round_, .fragment = progress_.fragments_applied};
  const auto range = fragment_range(id.fragment);
  const auto values = std::span(values_).first(static_cast<std::size_t>(range.size()));
  Contribution contribution = so_far;
  if (progress_.sent) {  // before an interruption
    contribution = *progress_.sent;
    std::ranges::copy(sent_delta_, values.begin());
  } else {
    const auto& work = progress_.work[static_cast<std::size_t>(id.fragment)];
    contribution.steps = work.steps;
    contribution.tokens = work.tokens;
    take_delta(id, theta, values);
    if (sync_.delay_steps > 0) {  // theta_local will not be what it was
      sent_delta_.assign(values.begin(), values.end());
      progress_.sent = contribution;
    }
  }
  if (!residual_.empty()) {
    const auto residual = part(residual_, range);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] += residual[k];
  }
  auto start_hash = checksum_text(outer_.checksum(range));
  is_committed_ = false;
  flight_.emplace(Flight{.id = id, .give_up = {}, .arrival = {}, .outcome = {}});
  flight_->arrival = worker_
                         .submit([this, id, contribution, hash = std::move(start_hash),
                                  stop = flight_->give_up.get_token()] {
                           return arrive(id, contribution, hash, stop);
                         })
                         .share();
  flight_->outcome = worker_.submit([this, id, arrival = flight_->arrival] {
    const auto& go = arrival.get().go;
    return go ? exchange(id, *go) : Outcome{};
  });
  span.finish();
}

void LowCommunication::take_delta(const SyncId& id, LocalTheta& theta, std::span<float> delta) {
  const auto range = fragment_range(id.fragment);
  const int64_t bad = outer_.delta(range, theta.pull(range), delta);
  if (bad < 0) return;
  const auto after = std::ranges::upper_bound(tensors_, bad, {}, &TensorPlace::begin);
  throw InternalError(
      fmt::format("{}: the delta of {} is not finite at element {} of the model; it is not sent. A "
                  "lower peak_learning_rate may keep the weights finite",
                  text_of(id, sync_.fragments), std::prev(after)->name, bad));
}

std::optional<SyncRecord> LowCommunication::apply(LocalTheta& theta, const std::stop_token& stop) {
  auto flight = std::exchange(flight_, std::nullopt);
  const std::stop_callback give_up(stop, [&flight] { flight->give_up.request_stop(); });
  SyncRecord record;
  record.id = flight->id;
  {
    auto span = outside_.recorder.span(SpanCause::kWait, round_);
    flight->arrival.wait();
    record.exposed_wait_seconds = span.finish();
  }
  const auto& arrival = flight->arrival.get();
  if (!arrival.go) return std::nullopt;
  {
    auto span = outside_.recorder.span(SpanCause::kWan, round_);
    flight->outcome.wait();
    record.exposed_wan_seconds = span.finish();
  }
  const auto outcome = flight->outcome.get();
  record.generation = arrival.go->generation;
  record.averaging_weight = outcome.averaging_weight;
  record.theta_hash = outcome.theta_hash;
  record.wait_seconds = arrival.seconds;
  record.wan_seconds = outcome.seconds;
  record.contributions = arrival.go->contributions;
  apply_mean(flight->id.fragment, theta);
  return record;
}

void LowCommunication::apply_mean(int64_t fragment, LocalTheta& theta) {
  auto span = outside_.recorder.span(SpanCause::kOuter, round_);
  const auto range = fragment_range(fragment);
  outer_.apply(range, std::span(values_).first(static_cast<std::size_t>(range.size())));
  if (!residual_.empty()) {
    std::copy_n(next_residual_.begin(), range.size(), part(residual_, range).begin());
  }
  if (sync_.alpha > 0) {
    const auto local = theta.pull(range);
    outer_.merge(range, static_cast<float>(sync_.alpha), local);
    theta.push(range, local);
  } else {
    theta.push(range, part(theta_global(), range));
  }
  progress_.work[static_cast<std::size_t>(fragment)] = {};
  progress_.sent.reset();
  ++progress_.fragments_applied;
  span.finish();
}

// ---- the worker's ----

LowCommunication::Arrival LowCommunication::arrive(const SyncId& id,
                                                   const Contribution& contribution,
                                                   const std::string& start_hash,
                                                   std::stop_token give_up) {
  const double began = outside_.clock.now_seconds();
  auto go = outside_.rendezvous.arrive(id, contribution, start_hash, std::move(give_up));
  return {.go = std::move(go), .seconds = outside_.clock.now_seconds() - began};
}

LowCommunication::Outcome LowCommunication::exchange(const SyncId& id, const Go& go) {
  const double began = outside_.clock.now_seconds();
  const auto range = fragment_range(id.fragment);
  const auto values = std::span(values_).first(static_cast<std::size_t>(range.size()));
  const auto next_residual =
      residual_.empty() ? std::span<float>() : std::span(next_residual_).first(values.size());
  std::vector<Work> works;
  for (const auto& sent : go.contributions) works.push_back({sent.steps, sent.batch, sent.tokens});
  const auto coefficients = averaging_coefficients(config_.averaging, works);
  outside_.exchange.average({.generation = go.generation,
                             .round = id.round,
                             .fragment = id.fragment,
                             .coefficients = coefficients,
                             .partitions = partitions(range)},
                            values, next_residual);
  // With the last fragment of a round the sites prove that all of theta_global is the same.
  const int64_t from = id.fragment + 1 == sync_.fragments ? 0 : range.begin;
  auto theta_hash = checksum_text(outer_.checksum_after(from, range, values));
  outside_.rendezvous.vote(id, theta_hash);
  is_committed_ = true;
  return {.averaging_weight = coefficients[site_id_],
          .theta_hash = std::move(theta_hash),
          .seconds = outside_.clock.now_seconds() - began};
}

// ---- checkpoints ----

Json LowCommunication::state() const {
  FARSTEP_CHECK(!flight_, "a sync is under way");
  return to_json(progress_);
}

void LowCommunication::restore(const Json& state) {
  try {
    progress_ = read_json<SyncProgress>(state, "strategy");
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
  if (std::ssize(progress_.work) != sync_.fragments ||
      progress_.fragments_applied >= sync_.fragments) {
    throw DataError(
        fmt::format("the checkpoint is of a run of {} fragments, {} of them applied; "
                    "this run has {}",
                    progress_.work.size(), progress_.fragments_applied, sync_.fragments));
  }
  sent_delta_.resize(
      progress_.sent ? static_cast<std::size_t>(fragment_range(progress_.fragments_applied).size())
                     : 0);
}

NamedBuffers LowCommunication::own_buffers() {
  NamedBuffers buffers;
  const auto add = [&buffers](const std::string& name, std::span<float> values) {
    buffers.push_back({.name = name,
                       .dtype = DType::kF32,
                       .shape = {std::ssize(values)},
                       .bytes = std::as_writable_bytes(values)});
  };
  if (!residual_.empty()) add("residual", residual_);
  if (progress_.sent) add("sent_delta", sent_delta_);
  return buffers;
}

}  // namespace farstep
