// Theta_global and its momentum, and what happens to them at a sync.
//
// Everything is fp32 in host memory, flat, in the order of the model's parameters; nothing here is
// ever bf16. A sync is of a fragment: a range of the flat vector, and values of the range's size.
// Methods may be called concurrently as long as none of them changes what another one reads.
//
// One sync: delta() -> Exchange::average -> checksum_after(mean), on which the sites vote ->
// apply(mean) -> merge(). Until apply nothing has changed, so an exchange that fails is repeated
// from the delta.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outer_optimizer/nesterov.h"
#include "outer_optimizer/schedule/partition.h"

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

  // The pseudo-gradient theta_global - theta_local of the range, in `delta`. Returns the flat index
  // of the first value that is not finite, or -1.
  int64_t delta(const Range& range, std::span<const float> theta_local,
                std::span<float> delta) const;

  // Checksum of the range of theta_global.
  uint64_t checksum(const Range& range) const;
  // Checksum that theta_global would have from element `from` to the end of `range` after
  // apply(range, mean); `from` is at most the range's begin.
  uint64_t checksum_after(int64_t from, const Range& range, std::span<const float> mean) const;

  // The outer step of the range.
  void apply(const Range& range, std::span<const float> mean);

  // Brings the range of theta_global into theta_local: theta_local <- alpha theta_local + (1 -
  // alpha) theta_global.
  void merge(const Range& range, float alpha, std::span<float> theta_local) const;

 private:
  NesterovSettings settings_;
  std::vector<float> theta_global_;
  std::vector<float> momentum_;
};

}  // namespace farstep
