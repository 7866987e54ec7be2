// Computes how long an inner step of a device must last, so that one machine can emulate sites of
// different speeds.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/model/device_config.h"

namespace farstep {

class EmulatedSpeed {
 public:
  // Without a config, steps keep their own length.
  explicit EmulatedSpeed(std::optional<EmulateConfig> config) : config_(std::move(config)) {}

  // Returns whether the device's speed is emulated.
  bool is_emulated() const { return config_.has_value(); }
  // Counts a step of `sequences` that took `own_seconds`. Returns how long it must last, at least
  // `own_seconds`.
  double step_lasts(double own_seconds, int64_t sequences);
  // Returns how long the next step will last if it takes `own_seconds`; counts nothing.
  double next_step_lasts(double own_seconds, int64_t sequences) const;

 private:
  // The same for step `number`, from 1.
  double lasts(int64_t number, double own_seconds, int64_t sequences) const;

  const std::optional<EmulateConfig> config_;
  int64_t steps_ = 0;
};

}  // namespace farstep
