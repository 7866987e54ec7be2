// Stands in for a slower device: after the real step the site sleeps for the rest of the emulated
// one.
#include "trainer/inner/emulated_speed.h"

#include <algorithm>

namespace farstep {

double EmulatedSpeed::step_lasts(double own_seconds, int64_t sequences) {
  return lasts(++steps_, own_seconds, sequences);
}

double EmulatedSpeed::next_step_lasts(double own_seconds, int64_t sequences) const {
  return lasts(steps_ + 1, own_seconds, sequences);
}

double EmulatedSpeed::lasts(int64_t number, double own_seconds, int64_t sequences) const {
  if (!config_) return own_seconds;
  double slowness = 1;
  for (const auto& change : config_->changes) {
    if (number >= change.step) slowness = change.times;
  }
  const double emulated_seconds =
      std::max(config_->step_seconds.value_or(0),
               config_->sequence_seconds.value_or(0) * static_cast<double>(sequences));
  // A device cannot be emulated faster than it is.
  return std::max(own_seconds,
                  slowness * std::max(emulated_seconds, config_->times.value_or(1) * own_seconds));
}

}  // namespace farstep
