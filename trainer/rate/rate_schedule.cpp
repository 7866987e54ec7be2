// By position, not by steps: sites take different numbers of steps in a round and must agree on the
// rate at its end.
#include "trainer/rate/rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Positions that are equal in exact arithmetic differ by less in a cycle's share.
constexpr double kRounding = 1e-9;

double share_of(const RateCycle& cycle, double position) {
  FARSTEP_CHECK(position >= 0 && cycle.begin < cycle.end, "position {} in a cycle from {} to {}",
                position, cycle.begin, cycle.end);
  return std::clamp((position - cycle.begin) / (cycle.end - cycle.begin), 0.0, 1.0);
}

// Returns where in the cycle the descent begins. A warm-up that is longer takes precedence.
double begin_of_descent(const RateConfig& config, const RateCycle& cycle) {
  const double level = config.schedule == RateShape::kWsd ? 1 - config.decay_fraction : 0;
  return std::max(cycle.warmup_fraction, level);
}

}  // namespace

double warmup_share(const RateConfig& config, double rounds) {
  if (!config.warmup_rounds) return config.warmup_fraction;
  return std::min(1.0, *config.warmup_rounds / rounds);
}

RateCycle first_cycle(const RateConfig& config, int64_t rounds) {
  const auto end = static_cast<double>(rounds);
  return {.end = end, .warmup_fraction = warmup_share(config, end)};
}

double position_after(int64_t rounds, int64_t steps, int64_t local_steps) {
  const double share = static_cast<double>(steps) / static_cast<double>(local_steps);
  return static_cast<double>(rounds) + std::min(1.0, share);
}

double rate_share(const RateConfig& config, const RateCycle& cycle, double position) {
  const double share = share_of(cycle, position);
  const double warmup = cycle.warmup_fraction;
  // With a warm-up of 0 no share is below it, so nothing is divided by 0.
  if (share < warmup) return cycle.begin_share + (1 - cycle.begin_share) * share / warmup;
  const double begin = begin_of_descent(config, cycle);
  if (share <= begin) return 1;
  const double descent = (share - begin) / (1 - begin);  // 0 at its begin, 1 at the end
  const double left = config.schedule == RateShape::kWsd
                          ? 1 - std::sqrt(descent)
                          : (1 + std::cos(std::numbers::pi * descent)) / 2;
  return config.final_fraction + (1 - config.final_fraction) * left;
}

bool has_fallen(const RateConfig& config, const RateCycle& cycle, double position) {
  return share_of(cycle, position) > begin_of_descent(config, cycle) + kRounding;
}

std::optional<int64_t> rounds_before_decay(const RateConfig& config, const RateCycle& cycle) {
  if (config.schedule != RateShape::kWsd) return std::nullopt;
  const double level = begin_of_descent(config, cycle) + kRounding;
  return static_cast<int64_t>(cycle.begin + level * (cycle.end - cycle.begin));
}

}  // namespace farstep
