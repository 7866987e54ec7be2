// theta_global, its momentum, and their update at a sync.
//
// All vectors are fp32 in host memory, flat, in the order of the model's parameters; never bf16. A
// sync is of a fragment: a range of the flat vector, and values of the range's size. Threads may
// call methods concurrently if none changes values that another reads.
//
// A sync calls delta(), Exchange::average(), checksum_after(mean), on which the sites vote,
// apply(mean), and merge(). Nothing changes before apply(), so a failed exchange can be repeated
// from the delta.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outer_optimizer/outer_step.h"
#include "outer_optimizer/schedule/partition.h"

namespace farstep::outer_optimizer {

class OuterOptimizer {
 public:
  // Starts with theta_global = `theta` and zero momentum.
  OuterOptimizer(const NesterovSettings& settings, std::span<const float> theta);

  std::span<const float> theta_global() const { return theta_global_; }
  std::span<const float> momentum() const { return momentum_; }
  // For restoring a checkpoint.
  std::span<float> mutable_theta_global() { return theta_global_; }
  std::span<float> mutable_momentum() { return momentum_; }

  // Writes the pseudo-gradient theta_global - theta_local of the range to `delta`. Returns the flat
  // index of the first value that is not finite, or -1.
  int64_t delta(const Range& range, std::span<const float> theta_local,
                std::span<float> delta) const;

  // Returns the checksum of a range of theta_global.
  uint64_t checksum(const Range& range) const;
  // Returns the checksum of theta_global from element `from` to the end of `range`, as it would be
  // after apply(range, mean). `from` is at most the range's begin.
  uint64_t checksum_after(int64_t from, const Range& range, std::span<const float> mean,
                          OuterStep step = OuterStep::kNesterov) const;

  // Takes the outer step of the range.
  void apply(const Range& range, std::span<const float> mean,
             OuterStep step = OuterStep::kNesterov);

  // Merges the range of theta_global: theta_local <- alpha theta_local + (1 - alpha) theta_global.
  void merge(const Range& range, float alpha, std::span<float> theta_local) const;

 private:
  NesterovSettings settings_;
  std::vector<float> theta_global_;
  std::vector<float> momentum_;
};

}  // namespace farstep::outer_optimizer
