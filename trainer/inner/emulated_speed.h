// How long an inner step of a device is made to last, so that one machine can play unequal sites.
//
// Not thread-safe: called by the training thread.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/site_config.h"

namespace farstep {

class EmulatedSpeed {
 public:
  // Without a config steps last as long as they do.
  explicit EmulatedSpeed(std::optional<EmulateConfig> config) : config_(std::move(config)) {}

  // Whether steps last longer than they do.
  bool is_played() const { return config_.has_value(); }
  // Counts a step of `sequences` whose own work took `own_seconds`, and returns how long it is to
  // last: never less than that.
  double step_lasts(double own_seconds, int64_t sequences);

 private:
  const std::optional<EmulateConfig> config_;
  int64_t steps_ = 0;
};

}  // namespace farstep
