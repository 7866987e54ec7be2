#include "trainer/inner/lr_schedule.h"

#include <cmath>
#include <numbers>

#include "trainer/base/error.h"

namespace farstep {

// A schedule by progress, not by steps: sites take different numbers of steps in a round and must
// agree on the rate at its end.
double learning_rate(const InnerConfig& config, double progress) {
  FARSTEP_CHECK(progress >= 0 && progress <= 1, "progress is {}", progress);
  const double warmup = config.warmup_fraction;
  const double peak = config.peak_learning_rate;
  // With a warm-up of 0 no progress is below it, so nothing is divided by 0.
  if (progress < warmup) return peak * progress / warmup;
  const double descent = (progress - warmup) / (1 - warmup);  // 0 at the peak, 1 at the end
  const double cosine = (1 + std::cos(std::numbers::pi * descent)) / 2;
  return peak * (config.final_fraction + (1 - config.final_fraction) * cosine);
}

int64_t steps_of_warm_up(const InnerConfig& config) {
  if (config.optimizer == InnerOptimizer::kSgd) return 0;
  return std::llround(2 / (1 - config.adamw.beta2));
}

}  // namespace farstep
