// Shares out a site's batch over its devices so that they finish together, from what their last
// steps took.
//
// A matter of the site alone: its peers see only how long its steps take. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heterogeneity/plan/batch_split.h"

namespace farstep {

class DeviceBalance {
 public:
  // `sequence_seconds`: what a sequence costs on each device, where that is known. Not empty, all
  // above 0.
  explicit DeviceBalance(std::vector<std::optional<double>> sequence_seconds)
      : sequence_seconds_(std::move(sequence_seconds)) {}

  // Sequences of each device in a step of `batch`, in their order. They stay the same from step to
  // step until another split would end the step sooner by more than a few percent, so that noise
  // does not move them.
  const std::vector<int64_t>& shares(int64_t batch);

  // How long each device took for the shares of the last step.
  void observe(std::span<const double> device_seconds);

 private:
  // Of each device; one that has never worked is taken to be as fast as the fastest.
  std::vector<DeviceCost> costs() const;

  std::vector<std::optional<double>> sequence_seconds_;  // moving average
  std::vector<int64_t> shares_;
};

}  // namespace farstep
