#include "trainer/validation/validation_history.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace farstep {

namespace {

constexpr double kLeastRise = 0.5;  // nats
constexpr double kDeviations = 6;

double standard_deviation(std::span<const ValidationLoss> losses) {
  const auto count = static_cast<double>(losses.size());
  double mean = 0, squares = 0;
  for (const auto& known : losses) mean += known.loss / count;
  for (const auto& known : losses) squares += (known.loss - mean) * (known.loss - mean) / count;
  return std::sqrt(squares);
}

// The parts of the newest validation among those that the sites have brought.
std::vector<heterogeneity::PartialValidation> newest_of(
    std::span<const heterogeneity::PartialValidation> parts) {
  int64_t round = -1;
  for (const auto& part : parts) round = std::max(round, part.round);
  std::vector<heterogeneity::PartialValidation> newest;
  std::ranges::copy_if(parts, std::back_inserter(newest),
                       [&](const auto& part) { return part.round == round && part.targets > 0; });
  return newest;
}

double mean_loss(const heterogeneity::PartialValidation& part) {
  return part.loss_sum / static_cast<double>(part.targets);
}

ValidationLoss loss_of(std::span<const heterogeneity::PartialValidation> parts) {
  heterogeneity::PartialValidation whole{.round = parts.front().round};
  for (const auto& part : parts) {
    whole.loss_sum += part.loss_sum;
    whole.targets += part.targets;
  }
  return {.round = whole.round, .loss = mean_loss(whole)};
}

}  // namespace

std::optional<Rise> ValidationHistory::add(
    std::span<const heterogeneity::PartialValidation> parts) {
  const auto newest = newest_of(parts);
  if (newest.empty() || newest.front().round <= judged_round) return std::nullopt;
  const auto loss = loss_of(newest);
  judged_round = loss.round;
  const bool is_watched =
      std::exchange(warned_validations, std::max<int64_t>(0, warned_validations - 1)) > 0;
  std::optional<Rise> rise;
  if (!losses.empty()) {
    const auto best = *std::ranges::min_element(losses, {}, &ValidationLoss::loss);
    const double limit = best.loss + std::max(kLeastRise, kDeviations * standard_deviation(losses));
    const auto above =
        std::ranges::count_if(newest, [&](const auto& part) { return mean_loss(part) > limit; });
    if (loss.loss > limit && 2 * above > std::ssize(newest)) {
      rise = {.newest = loss, .best = best, .is_second = is_watched};
    }
  }
  if (rise && on_rise != OnRise::kWarn) {
    warned_validations = kMostLosses;
    return rise;
  }
  losses.push_back(loss);
  if (losses.size() > kMostLosses) losses.erase(losses.begin());
  return rise;
}

std::optional<int64_t> ValidationHistory::round_to_go_back_to(int64_t every_rounds) const {
  if (on_rise == OnRise::kWarn || losses.empty()) return std::nullopt;
  return losses.back().round / every_rounds * every_rounds;
}

}  // namespace farstep
