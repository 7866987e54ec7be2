#include "trainer/inner/emulated_speed.h"

#include <algorithm>

namespace farstep {

EmulatedSpeed::EmulatedSpeed(std::optional<EmulateConfig> config, Clock& clock)
    : config_(config), clock_(clock) {}

void EmulatedSpeed::end_step(double begin_seconds) const {
  if (!config_) return;
  const double own_seconds = clock_.now_seconds() - begin_seconds;
  clock_.sleep_until(begin_seconds + std::max(config_->step_seconds.value_or(0),
                                              config_->times.value_or(1) * own_seconds));
}

}  // namespace farstep
