// Makes inner steps last as long as on a slower device, so that one machine can play unequal sites.
#pragma once

#include <optional>

#include "trainer/base/clock.h"
#include "trainer/config/site_config.h"

namespace farstep {

// Thread-safe where the clock is.
class EmulatedSpeed {
 public:
  // Without a config steps last as long as they do. `clock` must outlive this.
  EmulatedSpeed(std::optional<EmulateConfig> config, Clock& clock);

  // Called when a step's work is done that began at `begin_seconds` of the clock: returns when it
  // has lasted step_seconds at least, and `times` its own time.
  void end_step(double begin_seconds) const;

 private:
  const std::optional<EmulateConfig> config_;
  Clock& clock_;
};

}  // namespace farstep
