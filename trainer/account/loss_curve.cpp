#include "trainer/account/loss_curve.h"

#include <algorithm>

namespace farstep {

namespace {

// Longer rounds are drawn by their plan: where they end is not waited for.
constexpr std::size_t kMostOpen = 4096;

}  // namespace

// The plan comes first; the round's own record replaces it, as a round by deadline ends elsewhere.
void LossCurve::add(const Record& record) {
  if (const auto* plan = std::get_if<PlanEvent>(&record.event)) {
    steps_of_round_[plan->round] = plan->local_steps;
  } else if (const auto* step = std::get_if<StepEvent>(&record.event); step && step->loss) {
    open_.push_back({step->round, step->step, *step->loss});
    if (open_.size() > kMostOpen) close(kMostOpen / 2);
  } else if (const auto* round = std::get_if<RoundEvent>(&record.event)) {
    steps_of_round_[round->round] = round->local_steps;
    const auto later = std::ranges::find_if(
        open_, [&](const Step& open_step) { return open_step.round > round->round; });
    close(static_cast<std::size_t>(later - open_.begin()));
    steps_of_round_.erase(steps_of_round_.begin(), steps_of_round_.upper_bound(round->round));
  }
}

// When there are too many groups, pairs of them become one: then all groups are of one size again.
void LossCurve::close(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [round, step, loss] = open_[i];
    const auto planned = steps_of_round_.find(round);
    // A round under way may have more steps than were planned, and must not pass its end.
    const int64_t steps = std::max(planned == steps_of_round_.end() ? 0 : planned->second, step);
    if (sums_.empty() || sums_.back().steps == group_) {
      if (sums_.size() == kMostPoints) {
        for (std::size_t pair = 0; pair < kMostPoints / 2; ++pair) {
          const auto &a = sums_[2 * pair], &b = sums_[2 * pair + 1];
          sums_[pair] = {a.rounds + b.rounds, a.loss + b.loss, a.steps + b.steps};
        }
        sums_.resize(kMostPoints / 2);
        group_ *= 2;
      }
      sums_.emplace_back();
    }
    auto& sum = sums_.back();
    sum.rounds +=
        static_cast<double>(round - 1) + static_cast<double>(step) / static_cast<double>(steps);
    sum.loss += loss;
    ++sum.steps;
  }
  open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(count));
}

std::vector<std::pair<double, double>> LossCurve::points() const {
  LossCurve whole = *this;
  whole.close(whole.open_.size());
  std::vector<std::pair<double, double>> means;
  means.reserve(whole.sums_.size());
  for (const auto& [rounds, loss, steps] : whole.sums_) {
    const auto count = static_cast<double>(steps);
    means.emplace_back(rounds / count, loss / count);
  }
  return means;
}

}  // namespace farstep
