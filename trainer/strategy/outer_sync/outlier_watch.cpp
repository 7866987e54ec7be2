#include "trainer/strategy/outer_sync/outlier_watch.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>

#include "outer_optimizer/schedule/extent.h"
#include "trainer/base/error.h"

namespace farstep {

namespace {

// A single one may be a particle from space. A machine that does it again and again is broken.
constexpr int64_t kMostRounds = 3;

// Returns how far steps with this sum of rates can move a value from `largest` or less. With a step
// bound r (b + w |v|) a value is at most (largest + b sum) e^(w sum) all the time. 0: unknown.
double most_moved(const StepBound& bound, double rates, double largest) {
  const double by_updates = bound.per_rate * rates, decayed = bound.weight_decay * rates;
  const double moved = by_updates + decayed * (largest + by_updates) * std::exp(decayed);
  return std::isfinite(moved) ? moved : 0;
}

}  // namespace

OutlierWatch::OutlierWatch(const outer_optimizer::SyncConfig& sync, const StepBound& bound)
    : bound_(bound) {
  retune(sync, false);
}

void OutlierWatch::retune(const outer_optimizer::SyncConfig& sync, bool has_residuals) {
  is_judged_ = sync.outliers != outer_optimizer::OutlierRule::kOff;
  // A site that keeps a share of its own values does not begin from theta_global, and its distance
  // from there adds up over the rounds.
  is_mixed_ = sync.alpha > 0;
  fragments_ = sync.fragments;
  if (history_.fragments() != fragments_) history_.restart(fragments_, !has_residuals);
}

void OutlierWatch::restore(std::vector<DeltaPast> past) {
  if (std::ssize(past) == fragments_) {
    history_.restore(std::move(past));
  } else {
    history_.restart(fragments_, false);
  }
}

std::optional<outer_optimizer::DeltaFigures> OutlierWatch::figures(
    int64_t fragment, std::span<const float> delta, std::span<const float> theta,
    const outer_optimizer::Work& work, bool has_residual) const {
  if (!is_judged_ || work.steps == 0 || !work.rates) return std::nullopt;
  double bound = 0;
  if (bound_.per_rate > 0 && !is_mixed_) {
    const double largest = bound_.weight_decay > 0 ? outer_optimizer::extent_of(theta).largest : 0;
    bound = most_moved(bound_, *work.rates, largest);
  }
  return history_.figures(fragment, delta, work, bound, has_residual);
}

void OutlierWatch::commit(const wan::Go& go, std::size_t place) {
  const auto& own = go.contributions[place];
  const auto found = std::ranges::find(go.outliers, go.sites[place], &wan::Outlier::site);
  if (found != go.outliers.end() && found->is_left_out) {
    // A fault that lasts for a round may hit several fragments.
    if (std::exchange(last_left_out_, go.round) != go.round) ++rounds_left_out_;
    last_reason_ = found->reason;
  } else if (own.figures) {
    history_.add(go.fragment, *own.figures, own.work);
    if (go.round > last_left_out_) rounds_left_out_ = 0;
  }
}

void OutlierWatch::require_sound() const {
  if (rounds_left_out_ < kMostRounds) return;
  throw DivergenceError(fmt::format(
      "the others have left out this site's delta in {} rounds in a row, the last time because it "
      "{}. This site leaves the run. Test the memory and the devices of this machine first; then "
      "--resume lets it join again",
      rounds_left_out_, last_reason_));
}

std::vector<outer_optimizer::Work> counted_works(const wan::Go& go, int64_t fragments) {
  std::vector<outer_optimizer::Work> works;
  std::size_t num_sent = 0;
  for (const auto& contribution : go.contributions) {
    works.push_back(contribution.work);
    if (contribution.work.steps > 0) ++num_sent;
  }
  std::vector<std::string> left_out;
  for (const auto& outlier : go.outliers) {
    if (!outlier.is_left_out) continue;
    const auto place = std::ranges::find(go.sites, outlier.site) - go.sites.begin();
    works.at(static_cast<std::size_t>(place)) = {};
    left_out.push_back(fmt::format("{}'s {}", outlier.site, outlier.reason));
  }
  if (2 * left_out.size() <= num_sent) return works;
  throw DivergenceError(fmt::format(
      "{}: {} of {} deltas are out of proportion: {}. So the outer step is not taken. A lower "
      "peak_learning_rate may help, if the machines are sound; sync.outliers \"warn\" counts them",
      wan::text_of({go.round, go.fragment}, fragments), left_out.size(), num_sent,
      fmt::join(left_out, "; ")));
}

void log_outliers(const wan::SyncId& id, int64_t fragments,
                  std::span<const wan::Outlier> outliers) {
  for (const auto& [site, is_left_out, reason] : outliers) {
    spdlog::warn("{}: the delta of {} {}. {}", wan::text_of(id, fragments), site, reason,
                 is_left_out ? "The others go on without it" : "It counts all the same");
  }
}

}  // namespace farstep
