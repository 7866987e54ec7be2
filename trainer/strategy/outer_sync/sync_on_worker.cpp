// The part of a sync that the worker does: from the delta to the outer step. No state changes
// before the vote. Until then everything can be done again from the delta, with fewer sites or over
// other connections.
#include <algorithm>
#include <cmath>
#include <utility>

#include "outer_optimizer/schedule/averaging.h"
#include "trainer/base/checksum.h"
#include "trainer/base/error.h"
#include "trainer/strategy/outer_sync/outer_sync.h"

namespace farstep {

// The sync follows DiLoCo (Douillard et al. 2023): delta, mean, Nesterov. Arrival and vote are
// added, so that unequal theta_global is found at once instead of spoiling the mean.
OuterSync::Arrival OuterSync::arrive(const wan::SyncId& id, const wan::Contribution& contribution,
                                     const Steps& steps, std::stop_token give_up) {
  const auto delta = values(id.fragment);
  steps.take_delta(delta);
  // From here on the sync may change what others still read.
  outside_.wait_for_readers();
  residuals_.add_to_delta(id.fragment, delta);
  // The coordinator compares these hashes: sites that differ already must not average.
  const auto start_hash = checksum_text(outer_.checksum(fragment_range(id.fragment)));
  const double began = outside_.clock.now_seconds();
  saturated_ = count_saturated(codec_of(id.round), delta);
  auto sent = contribution;
  sent.figures = figures_of(id, sent.work, delta);
  sent.holding = holding_;
  if (sent.holding) sent.holding->received = received_.ranges();
  auto go = outside_.rendezvous.arrive(id, sent, start_hash, std::move(give_up));
  return {.go = std::move(go), .seconds = outside_.clock.now_seconds() - began};
}

std::optional<outer_optimizer::DeltaFigures> OuterSync::figures_of(
    const wan::SyncId& id, const outer_optimizer::Work& work, std::span<const float> delta) const {
  const auto range = fragment_range(id.fragment);
  const auto theta = outer_optimizer::part(outer_.theta_global(), range);
  auto figures = watch_.figures(id.fragment, delta, theta, work, !residuals_.empty());
  if (figures && !std::isfinite(figures->largest)) {  // a residual was added
    const auto bad = std::ranges::find_if_not(delta, [](float v) { return std::isfinite(v); });
    refuse_delta(id, range.begin + (bad - delta.begin()));
  }
  return figures;
}

OuterSync::Outcome OuterSync::finish(const wan::SyncId& id, std::optional<wan::Go> go,
                                     const wan::Contribution& contribution, const Steps& steps,
                                     const std::stop_token& give_up) {
  const auto forget = [this] {
    received_.forget();
    holding_.reset();
    // The next sync cuts the fragment anew among the members of the view.
    if (!residuals_.empty()) keep_residuals();
  };
  try {
    auto outcome = repeat(id, std::move(go), contribution, steps, give_up);
    forget();
    return outcome;
  } catch (...) {
    forget();
    throw;
  }
}

// No state has changed when an exchange fails, and theta_local still has the delta. So the members
// that are left do the same sync again.
OuterSync::Outcome OuterSync::repeat(const wan::SyncId& id, std::optional<wan::Go> go,
                                     const wan::Contribution& contribution, const Steps& steps,
                                     const std::stop_token& give_up) {
  const double began = outside_.clock.now_seconds();
  while (go) {
    try {
      auto outcome = exchange(id, *go, steps, give_up);
      outcome.seconds = outside_.clock.now_seconds() - began;
      return outcome;
    } catch (const LeftBehindError&) {
      throw;  // it joins again
    } catch (const PeerError& error) {
      // This site itself cannot take part, and the others go on without it.
      if (error.site() == view_.own_name()) throw;
      if (!outside_.rendezvous.is_renewed(go->generation, error.site(), give_up)) throw;
    }
    go = arrive(id, contribution, steps, give_up).go;
  }
  return {};
}

OuterSync::Outcome OuterSync::exchange(const wan::SyncId& id, const wan::Go& go, const Steps& steps,
                                       const std::stop_token& give_up) {
  // Before the exchange, so that a failure changes no state.
  steps.check_plan(go);
  if (go.generation != view_.generation) {
    const auto self = std::ranges::find(go.sites, view_.own_name());
    FARSTEP_CHECK(self != go.sites.end(), "{} is no member of generation {}", view_.own_name(),
                  go.generation);
    take_view({.generation = go.generation,
               .members = go.sites,
               .self = static_cast<std::size_t>(self - go.sites.begin())});
  }
  const auto range = fragment_range(id.fragment);
  const auto mean = values(id.fragment);
  const auto coefficients =
      averaging_coefficients(outer_config_.averaging, counted_works(go, sync_.fragments));
  // It counts 0, and 0 times what is out of proportion may still be infinite.
  if (leaves_out(go.outliers, view_.own_name())) std::ranges::fill(mean, 0.0F);
  average(id, go, coefficients, mean);
  // With a round's last fragment the hash covers all of theta_global, so the vote proves that all
  // of it is equal.
  const int64_t from = id.fragment + 1 == sync_.fragments ? 0 : range.begin;
  // Votes come before the outer step. A site whose vote fails has still its old theta_global and
  // its delta, so the sync can be repeated.
  auto theta_hash = checksum_text(outer_.checksum_after(from, range, mean, step_of(id.round)));
  if (!outside_.rendezvous.vote(id, theta_hash, give_up)) return {};
  residuals_.commit(id.fragment);
  watch_.commit(go, view_.self);
  if (steps.applies_mean) apply(id, mean);
  return {
      .go = go, .averaging_weight = coefficients[view_.self], .theta_hash = std::move(theta_hash)};
}

// All members get the coordinator's same answer, so they compute the same partitions.
void OuterSync::average(const wan::SyncId& id, const wan::Go& go,
                        std::span<const double> coefficients, std::span<float> values) {
  std::vector<outer_optimizer::Arrived> arrived;
  std::vector<int64_t> deltas;  // that count
  for (std::size_t place = 0; place < go.contributions.size(); ++place) {
    const auto& sent = go.contributions[place];
    const int64_t delta = coefficients[place] == 0 ? 0 : sent.delta;
    if (delta != 0) deltas.push_back(delta);
    arrived.push_back({.delta = delta, .holding = sent.holding ? &*sent.holding : nullptr});
  }
  auto parts = partitions(fragment_range(id.fragment), arrived);
  const auto& own = parts[view_.self];
  if (!residuals_.empty()) keep_residuals(id.fragment, own);
  // Kept before it fails, as nobody can tell then what had come.
  const bool is_kept = traits_of(sync_.exchange).keeps_received;
  if (is_kept) holding_ = {.partition = own.ranges(), .received = {}, .deltas = std::move(deltas)};
  exchanges_->among(view_).average({.generation = go.generation,
                                    .round = id.round,
                                    .fragment = id.fragment,
                                    .coefficients = {coefficients.begin(), coefficients.end()},
                                    .partitions = std::move(parts),
                                    .codec = &codec_of(id.round),
                                    .received = is_kept ? &received_ : nullptr},
                                   values, residuals_.next(id.fragment));
}

}  // namespace farstep
