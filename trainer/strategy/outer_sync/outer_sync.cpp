// A sync runs on a worker as two tasks, the arrival and the rest. Before all sites have arrived a
// site may give up; afterwards the others count on its bytes. No state changes before the vote.
// Until then everything can be done again from the delta, with fewer sites or over other
// connections.
#include "trainer/strategy/outer_sync/outer_sync.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "outer_optimizer/codec/make_codec.h"
#include "outer_optimizer/schedule/averaging.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"

namespace farstep {

OuterSync::OuterSync(const StrategySettings& settings, const View& view, StartValues start,
                     const Surroundings& surroundings)
    : outer_config_(settings.outer),
      base_steps_(settings.base_steps),
      tensors_(std::move(start.tensors)),
      outside_(surroundings),
      outer_({.learning_rate = static_cast<float>(settings.outer.learning_rate),
              .momentum = static_cast<float>(settings.outer.momentum)},
             start.theta),
      view_(view),
      first_generation_(view.generation),
      sync_(settings.sync),
      watch_(settings.sync, settings.step_bound) {
  apply_config();
}

// The worker would otherwise wait for sites at the coordinator, and its destructor for the worker.
OuterSync::~OuterSync() {
  if (flight_) flight_->give_up.request_stop();
}

void OuterSync::retune(const outer_optimizer::SyncConfig& sync, std::span<const double> shares) {
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

void OuterSync::meet(const View& view, outer_optimizer::Exchanges& exchanges) {
  FARSTEP_CHECK(!flight_, "a sync is under way");
  exchanges_ = &exchanges;
  // A sync may have found a newer view than the one of the round.
  if (view.generation >= view_.generation) take_view(view);
  // The residuals of the means are of this site's own partitions, which may have moved.
  if (!residuals_.empty()) keep_residuals();
}

void OuterSync::take_view(const View& view) {
  if (view == view_) return;
  // The shares are by place. A generation with the members of an older one may follow one with
  // others, which only some sites have heard of. So a newer one ends the shares in any case.
  const bool keeps_shares = view.generation == view_.generation && view.members == view_.members;
  view_ = view;
  if (tuning_ && !keeps_shares) tuning_->shares.clear();
}

std::vector<double> OuterSync::shares() const {
  return tuning_ && !tuning_->shares.empty() ? tuning_->shares : configured_shares(sync_, view_);
}

void OuterSync::apply_config() {
  codec_ = outer_optimizer::make_codec(sync_.codec);
  fine_codec_ = outer_optimizer::make_codec({.kind = sync_.fine_codec});
  // The last fragment of equal_part is the largest.
  values_.resize(static_cast<std::size_t>(fragment_range(sync_.fragments - 1).size()));
  make_room_for_residuals();
  watch_.retune(sync_, !residuals_.empty());
}

void OuterSync::begin_anew() {
  if (!residuals_.empty()) {
    residuals_.drop();
    keep_residuals();
  }
  watch_.begin_anew();
}

void OuterSync::make_room_for_residuals() {
  if (codec_->is_lossy() && !sync_.codec.feeds_back()) {
    residuals_.drop();
  } else if (codec_->is_lossy() ||
             !residuals_.empty()) {  // a lossless codec still sends these residuals
    keep_residuals();
  }
}

void OuterSync::keep_residuals(std::optional<int64_t> fragment,
                               const outer_optimizer::Partition& partition) {
  std::vector<outer_optimizer::Range> fragments;
  Residuals::OwnRanges own;
  for (int64_t number = 0; number < sync_.fragments; ++number) {
    const auto range = fragment_range(number);
    fragments.push_back(range);
    auto& ranges = own.emplace_back(number == fragment ? partition.ranges()
                                                       : partitions(range)[view_.self].ranges());
    for (auto& part : ranges) part = {range.begin + part.begin, range.begin + part.end};
  }
  residuals_.keep(std::move(fragments), std::move(own));
}

OuterSyncState OuterSync::state() const {
  FARSTEP_CHECK(!flight_, "a sync is under way");
  return {.tuning = tuning_,
          .has_residuals = !residuals_.empty(),
          .members = view_.members,
          .place = static_cast<int64_t>(view_.self),
          .past = watch_.state()};
}

// The state is of the view in which it was saved, even if it is another site's. meet() then moves
// it to the present view, also if a sync that failed has found a newer one: else this site would
// take the other one's place.
void OuterSync::restore(const OuterSyncState& state) {
  if (state.place < std::ssize(state.members)) {
    view_.generation = first_generation_;
    view_.members = state.members;
    view_.self = static_cast<std::size_t>(state.place);
  }
  if (state.tuning) {
    auto sync = state.tuning->sync;
    // These two are never tuned, so the run's config decides them.
    sync.exchange = sync_.exchange;
    sync.lanes = sync_.lanes;
    require_fits(sync, state.tuning->shares);
    retune(sync, state.tuning->shares);
  }
  if (state.has_residuals) keep_residuals();
  watch_.restore(state.past);
}

void OuterSync::require_fits(const outer_optimizer::SyncConfig& sync,
                             std::span<const double> shares) const {
  try {
    sync.validate({"strategy", "sync.tuning.sync"}, base_steps_);
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
  if (shares.empty()) return;
  if (const auto fault = outer_optimizer::fault_of_shares(shares, view_.size()); !fault.empty()) {
    throw DataError("strategy.sync.tuning.shares: has " + fault);
  }
}

void OuterSync::drop_spent_residuals() {
  if (!codec_->is_lossy()) residuals_.drop();
}

void OuterSync::apply(const wan::SyncId& id, std::span<const float> mean) {
  outer_.apply(fragment_range(id.fragment), mean, step_of(id.round));
}

uint64_t OuterSync::checksum_after(const wan::SyncId& id, std::span<const float> mean) const {
  const auto range = fragment_range(id.fragment);
  const int64_t size = std::ssize(outer_.theta_global());
  FARSTEP_CHECK(range.end == size, "values after the fragment would be left out");
  return outer_.checksum_after(0, range, mean, step_of(id.round));
}

// A Nesterov step goes past the mean of the sites' models, to where the next round begins. After
// the last round nobody trains on from there, and the mean itself has the lower loss.
outer_optimizer::OuterStep OuterSync::step_of(int64_t round) const {
  return round > outer_config_.rounds - outer_config_.mean_rounds
             ? outer_optimizer::OuterStep::kMean
             : outer_optimizer::OuterStep::kNesterov;
}

const outer_optimizer::Codec& OuterSync::codec_of(int64_t round) const {
  return sync_.is_fine(round, outer_config_.rounds) ? *fine_codec_ : *codec_;
}

outer_optimizer::Range OuterSync::fragment_range(int64_t fragment) const {
  return outer_optimizer::equal_part(std::ssize(outer_.theta_global()), static_cast<int>(fragment),
                                     static_cast<int>(sync_.fragments));
}

std::span<float> OuterSync::values(int64_t fragment) {
  return outer_optimizer::part(values_, {0, fragment_range(fragment).size()});
}

std::vector<outer_optimizer::Partition> OuterSync::partitions(
    const outer_optimizer::Range& fragment,
    std::span<const outer_optimizer::Arrived> arrived) const {
  std::vector<int64_t> borders;
  for (const auto& tensor : tensors_) borders.push_back(tensor.begin - fragment.begin);
  const auto of_members = shares();
  // The fine rounds have other blocks, but not other partitions.
  const auto block = sync_.fine_rounds == 0
                         ? codec_->block_values()
                         : std::lcm(codec_->block_values(), fine_codec_->block_values());
  return partitions_of_sync(
      fragment.size(),
      {.rule = sync_.partition, .shares = of_members, .borders = borders, .block = block}, arrived);
}

void OuterSync::refuse_delta(const wan::SyncId& id, int64_t index) const {
  const auto after = std::ranges::upper_bound(tensors_, index, {}, &TensorStart::begin);
  throw DivergenceError(
      fmt::format("{}: the delta of {} is not finite at element {} of the model; it is not sent. A "
                  "lower peak_learning_rate may keep the weights finite",
                  text_of(id, sync_.fragments), std::prev(after)->name, index));
}

void OuterSync::send(const wan::SyncId& id, const wan::Contribution& sent, Steps steps) {
  FARSTEP_CHECK(exchanges_, "no round has begun");
  FARSTEP_CHECK(!flight_, "a sync is under way");
  watch_.require_sound();
  auto contribution = sent;
  contribution.delta = std::uniform_int_distribution(int64_t{1}, wan::kMostDelta)(delta_numbers_);
  flight_.emplace(Flight{.id = id, .give_up = {}, .arrival = {}, .outcome = {}});
  const auto shared = std::make_shared<const Steps>(std::move(steps));
  flight_->arrival =
      worker_
          .submit([this, id, contribution, shared, stop = flight_->give_up.get_token()] {
            return arrive(id, contribution, *shared, stop);
          })
          .share();
  // Two tasks, so that receive() and try_give_up() can wait for the arrival alone.
  flight_->outcome = worker_.submit([this, id, contribution, shared, arrival = flight_->arrival,
                                     stop = flight_->give_up.get_token()] {
    return finish(id, arrival.get().go, contribution, *shared, stop);
  });
}

std::optional<SyncRecord> OuterSync::receive(int64_t round, const std::stop_token& stop) {
  // The worker waits for the checkpoint before it arrives. Done here first, that time is recorded
  // as a checkpoint's and not as waiting for peers.
  outside_.finish_checkpoint();
  // Taken out first, so that a sync that fails leaves nothing under way.
  auto flight = std::exchange(flight_, std::nullopt);
  FARSTEP_CHECK(flight, "no sync is under way");
  // After arrival the stop has no effect, unless a site is lost: all sites have begun the sync, and
  // it counts at all or at none.
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
  auto outcome = flight->outcome.get();
  if (!outcome.go) return std::nullopt;
  record.generation = outcome.go->generation;
  record.members = std::move(outcome.go->sites);
  record.newcomers = std::move(outcome.go->newcomers);
  record.outliers = std::move(outcome.go->outliers);
  log_outliers(record.id, sync_.fragments, record.outliers);
  record.saturated = saturated_;
  if (saturated_ > 0) {
    const auto& codec = codec_of(record.id.round);
    spdlog::warn(
        "{}: {} values of this site's delta are above {}, and travel as that; "
        "sync.codec.kind bf16 has room for them",
        text_of(record.id, sync_.fragments), saturated_, codec.largest_value());
  }
  record.averaging_weight = outcome.averaging_weight;
  record.theta_hash = outcome.theta_hash;
  record.wait_seconds = arrival.seconds;
  record.wan_seconds = outcome.seconds;
  record.contributions = std::move(outcome.go->contributions);
  // Of no use after the sync, and a checkpoint may save the record.
  for (auto& contribution : record.contributions) contribution.holding.reset();
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

}  // namespace farstep
