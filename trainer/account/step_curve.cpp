#include "trainer/account/step_curve.h"

#include <algorithm>
#include <limits>

namespace farstep {

namespace {

// Longer rounds are drawn by their plan: where they end is not waited for.
constexpr std::size_t kMostOpen = 4096;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

void add_to(StepPoint& sum, const StepPoint& point) {
  sum.rounds += point.rounds;
  sum.loss += point.loss;
  sum.gradient_norm += point.gradient_norm;
  sum.learning_rate += point.learning_rate;
}

}  // namespace

// The plan comes first; the round's own record replaces it, as a round by deadline ends elsewhere.
void StepCurve::add(const Record& record) {
  if (const auto* plan = std::get_if<PlanEvent>(&record.event)) {
    steps_of_round_[plan->round] = plan->local_steps;
  } else if (const auto* step = std::get_if<StepEvent>(&record.event); step && step->loss) {
    open_.push_back({step->round,
                     step->step,
                     {.loss = *step->loss,
                      .gradient_norm = step->gradient_norm.value_or(kUnknown),
                      .learning_rate = step->learning_rate.value_or(kUnknown)}});
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
void StepCurve::close(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto [round, step, point] = open_[i];
    const auto planned = steps_of_round_.find(round);
    // A round under way may have more steps than were planned, and must not pass its end.
    const int64_t steps = std::max(planned == steps_of_round_.end() ? 0 : planned->second, step);
    if (sums_.empty() || sums_.back().steps == group_) {
      if (sums_.size() == kMostPoints) {
        for (std::size_t pair = 0; pair < kMostPoints / 2; ++pair) {
          auto a = sums_[2 * pair];
          const auto& b = sums_[2 * pair + 1];
          add_to(a.point, b.point);
          sums_[pair] = {a.point, a.steps + b.steps};
        }
        sums_.resize(kMostPoints / 2);
        group_ *= 2;
      }
      sums_.emplace_back();
    }
    point.rounds =
        static_cast<double>(round - 1) + static_cast<double>(step) / static_cast<double>(steps);
    add_to(sums_.back().point, point);
    ++sums_.back().steps;
  }
  open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(count));
}

std::vector<StepPoint> StepCurve::points() const {
  StepCurve whole = *this;
  whole.close(whole.open_.size());
  std::vector<StepPoint> means;
  means.reserve(whole.sums_.size());
  for (const auto& [sum, steps] : whole.sums_) {
    const auto count = static_cast<double>(steps);
    means.push_back({sum.rounds / count, sum.loss / count, sum.gradient_norm / count,
                     sum.learning_rate / count});
  }
  return means;
}

}  // namespace farstep
