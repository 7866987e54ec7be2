#include "trainer/strategy/outer_sync.h"

#include <algorithm>
#include <utility>

#include "outer_optimizer/codec/make_codec.h"
#include "outer_optimizer/schedule/averaging.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

// Returns the shares of the run's config. With servers, each server has share 1 and any other
// member 0; without servers all have the same share.
std::vector<double> configured_shares(const SyncConfig& sync, const View& view) {
  if (traits_of(sync.exchange).servers != ServersUse::kAddUp) {
    return std::vector<double>(view.size(), 1);
  }
  std::vector<double> shares;
  for (const auto& member : view.members) {
    shares.push_back(std::ranges::count(sync.servers, member) > 0 ? 1 : 0);
  }
  if (sync.servers.empty()) shares.front() = 1;
  return shares;
}

}  // namespace

OuterSync::OuterSync(const StrategySettings& settings, const View& view, StartValues start,
                     const Surroundings& surroundings)
    : averaging_(settings.outer.averaging),
      tensors_(std::move(start.tensors)),
      outside_(surroundings),
      outer_({.learning_rate = static_cast<float>(settings.outer.learning_rate),
              .momentum = static_cast<float>(settings.outer.momentum)},
             start.theta),
      view_(view),
      sync_(settings.sync) {
  apply_config();
}

// The worker would otherwise wait for sites at the coordinator, and its destructor for the worker.
OuterSync::~OuterSync() {
  if (flight_) flight_->give_up.request_stop();
}

void OuterSync::retune(const SyncConfig& sync, std::span<const double> shares) {
  FARSTEP_CHECK(!flight_, "a sync is under way");
  // Connections were made once, for this exchange and these lanes.
  FARSTEP_CHECK(sync.exchange == sync_.exchange && sync.lanes == sync_.lanes,
                "exchange and lanes are the whole run's");
  FARSTEP_CHECK(shares.empty() || shares.size() == view_.size(), "{} shares for {} sites",
                shares.size(), view_.size());
  tuning_ = SyncTuning{.sync = sync, .shares = {shares.begin(), shares.end()}};
  sync_ = sync;
  apply_config();
}

void OuterSync::meet(const View& view, Exchange& exchange) {
  FARSTEP_CHECK(!flight_, "a sync is under way");
  exchange_ = &exchange;
  if (view == view_) return;
  const bool same_members = view.members == view_.members;
  view_ = view;
  if (same_members) return;
  // The shares are by place, and the places of the old members are no longer valid. The residuals
  // of the means are of this site's own partitions, which have moved.
  if (tuning_) tuning_->shares.clear();
  if (!residuals_.empty()) keep_residuals();
}

std::vector<double> OuterSync::shares() const {
  return tuning_ && !tuning_->shares.empty() ? tuning_->shares : configured_shares(sync_, view_);
}

void OuterSync::apply_config() {
  codec_ = make_codec(sync_.codec);
  // The last fragment of equal_part is the largest.
  values_.resize(static_cast<std::size_t>(fragment_range(sync_.fragments - 1).size()));
  make_room_for_residuals();
}

void OuterSync::make_room_for_residuals() {
  if (codec_->is_lossy() && !sync_.codec.error_feedback) {
    residuals_.drop();
  } else if (codec_->is_lossy() ||
             !residuals_.empty()) {  // a lossless codec still sends these residuals
    keep_residuals();
  }
}

void OuterSync::keep_residuals() {
  std::vector<Range> fragments, own;
  for (int64_t fragment = 0; fragment < sync_.fragments; ++fragment) {
    const auto range = fragment_range(fragment);
    const auto part = partitions(range)[view_.self];
    fragments.push_back(range);
    own.push_back({range.begin + part.begin, range.begin + part.end});
  }
  residuals_.keep(std::move(fragments), std::move(own));
}

OuterSyncState OuterSync::state() const {
  FARSTEP_CHECK(!flight_, "a sync is under way");
  return {.tuning = tuning_, .has_residuals = !residuals_.empty()};
}

void OuterSync::restore(const OuterSyncState& state) {
  if (state.tuning) {
    auto sync = state.tuning->sync;
    // These two are never tuned, so the run's config decides them.
    sync.exchange = sync_.exchange;
    sync.lanes = sync_.lanes;
    retune(sync, state.tuning->shares);
  }
  if (state.has_residuals) keep_residuals();
}

void OuterSync::drop_spent_residuals() {
  if (!codec_->is_lossy()) residuals_.drop();
}

Range OuterSync::fragment_range(int64_t fragment) const {
  return equal_part(std::ssize(outer_.theta_global()), static_cast<int>(fragment),
                    static_cast<int>(sync_.fragments));
}

std::span<float> OuterSync::values(int64_t fragment) {
  return part(values_, {0, fragment_range(fragment).size()});
}

std::vector<Range> OuterSync::partitions(const Range& fragment) const {
  std::vector<int64_t> borders;
  for (const auto& tensor : tensors_) borders.push_back(tensor.begin);
  auto parts = sync_.partition == PartitionRule::kBytes
                   ? cut_by_shares(fragment, shares())
                   : cut_at_borders(fragment, shares(), borders);
  for (auto& part : parts) part = {part.begin - fragment.begin, part.end - fragment.begin};
  return parts;
}

void OuterSync::refuse_delta(const SyncId& id, int64_t index) const {
  const auto after = std::ranges::upper_bound(tensors_, index, {}, &TensorStart::begin);
  throw DivergenceError(
      fmt::format("{}: the delta of {} is not finite at element {} of the model; it is not sent. A "
                  "lower peak_learning_rate may keep the weights finite",
                  text_of(id, sync_.fragments), std::prev(after)->name, index));
}

void OuterSync::send(const SyncId& id, const Contribution& contribution, Steps steps) {
  FARSTEP_CHECK(exchange_, "no round has begun");
  FARSTEP_CHECK(!flight_, "a sync is under way");
  flight_.emplace(Flight{.id = id, .give_up = {}, .arrival = {}, .outcome = {}});
  const auto shared = std::make_shared<const Steps>(std::move(steps));
  flight_->arrival =
      worker_
          .submit([this, id, contribution, shared, stop = flight_->give_up.get_token()] {
            return arrive(id, contribution, *shared, stop);
          })
          .share();
  // Two tasks, so that receive() and try_give_up() can wait for the arrival alone.
  flight_->outcome = worker_.submit([this, id, shared, arrival = flight_->arrival] {
    const auto& go = arrival.get().go;
    return go ? exchange(id, *go, *shared) : Outcome{};
  });
}

std::optional<SyncRecord> OuterSync::receive(int64_t round, const std::stop_token& stop) {
  // The worker waits for the checkpoint before it arrives. Done here first, that time is recorded
  // as a checkpoint's and not as waiting for peers.
  outside_.finish_checkpoint();
  // Taken out first, so that a sync that fails leaves nothing under way.
  auto flight = std::exchange(flight_, std::nullopt);
  FARSTEP_CHECK(flight, "no sync is under way");
  // After arrival the stop has no effect: all sites have begun the sync, and it counts at all or at
  // none.
  const std::stop_callback give_up(stop, [&flight] { flight->give_up.request_stop(); });
  SyncRecord record;
  record.id = flight->id;
  // Waiting for peers and exchanging are separate spans: only the former is idle time in the
  // papers' sense.
  {
    auto span = outside_.recorder.span(SpanCause::kWait, round);
    flight->arrival.wait();
    record.exposed_wait_seconds = span.finish();
  }
  const auto& arrival = flight->arrival.get();
  if (!arrival.go) return std::nullopt;
  {
    auto span = outside_.recorder.span(SpanCause::kWan, round);
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
  return record;
}

bool OuterSync::try_give_up() {
  if (!flight_) return true;
  auto flight = std::exchange(flight_, std::nullopt);
  // A sync that still waits for sites is withdrawn, and the delta stays. One that all have begun
  // cannot be withdrawn, as the others count on this site's bytes.
  flight->give_up.request_stop();
  if (!flight->arrival.get().go) return true;
  flight_ = std::move(flight);
  return false;
}

// ---- on the worker ----

// The sync follows DiLoCo (Douillard et al. 2023): delta, mean, Nesterov. Arrival and vote are
// added, so that unequal theta_global is found at once instead of spoiling the mean.
OuterSync::Arrival OuterSync::arrive(const SyncId& id, const Contribution& contribution,
                                     const Steps& steps, std::stop_token give_up) {
  const auto delta = values(id.fragment);
  steps.take_delta(delta);
  // From here on the sync may change what the checkpoint still reads.
  outside_.wait_for_checkpoint();
  residual_places_ = residuals_.begin(id.fragment, delta);
  // The coordinator compares these hashes: sites that differ already must not average.
  const auto start_hash = checksum_text(outer_.checksum(fragment_range(id.fragment)));
  const double began = outside_.clock.now_seconds();
  auto go = outside_.rendezvous.arrive(id, contribution, start_hash, std::move(give_up));
  return {.go = std::move(go), .seconds = outside_.clock.now_seconds() - began};
}

OuterSync::Outcome OuterSync::exchange(const SyncId& id, const Go& go, const Steps& steps) {
  const double began = outside_.clock.now_seconds();
  // Before the exchange, so that a failure changes no state.
  steps.check_plan(go.contributions);  // before the exchange, so that a failure changes no state
  const auto range = fragment_range(id.fragment);
  const auto mean = values(id.fragment);
  std::vector<Work> works;
  for (const auto& sent : go.contributions) works.push_back(sent.work);
  const auto coefficients = averaging_coefficients(averaging_, works);
  exchange_->average({.generation = go.generation,
                      .round = id.round,
                      .fragment = id.fragment,
                      .coefficients = coefficients,
                      .partitions = partitions(range),
                      .codec = codec_.get()},
                     mean, residual_places_);
  // With a round's last fragment the hash covers all of theta_global, so the vote proves that all
  // of it is equal.
  const int64_t from = id.fragment + 1 == sync_.fragments ? 0 : range.begin;
  // Votes come before the outer step. A site whose vote fails has still its old theta_global and
  // its delta, so the sync can be repeated.
  auto theta_hash = checksum_text(outer_.checksum_after(from, range, mean));
  outside_.rendezvous.vote(id, theta_hash);
  residuals_.commit(id.fragment);
  steps.apply_mean(mean);
  return {.averaging_weight = coefficients[view_.self],
          .theta_hash = std::move(theta_hash),
          .seconds = outside_.clock.now_seconds() - began};
}

}  // namespace farstep
