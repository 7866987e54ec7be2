// Theta_global and its momentum, and the three things that happen to them at a sync.
//
// Everything is fp32 in host memory, flat, in the order of the model's parameters; nothing here is
// ever bf16. Not thread-safe.
//
// One sync: delta() -> Exchange::average -> checksum_after(mean), on which the sites vote ->
// apply(mean). Until apply nothing has changed, so an exchange that fails is repeated from delta().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outer_optimizer/nesterov.h"

namespace farstep {

class OuterOptimizer {
 public:
  // Starts from theta_global = `theta` with zero momentum.
  OuterOptimizer(const NesterovSettings& settings, std::span<const float> theta);

  std::span<const float> theta_global() const { return theta_global_; }
  std::span<const float> momentum() const { return momentum_; }
  // For restoring a checkpoint into.
  std::span<float> mutable_theta_global() { return theta_global_; }
  std::span<float> mutable_momentum() { return momentum_; }

  // The pseudo-gradient theta_global - theta_local, in `delta` (same length). Returns the index of
  // the first value that is not finite, or -1.
  int64_t delta(std::span<const float> theta_local, std::span<float> delta) const;

  // Checksum of theta_global, and the one it would have after apply(mean).
  uint64_t checksum() const;
  uint64_t checksum_after(std::span<const float> mean) const;

  // The outer step.
  void apply(std::span<const float> mean);

 private:
  NesterovSettings settings_;
  std::vector<float> theta_global_;
  std::vector<float> momentum_;
};

}  // namespace farstep
