// Splits a site's batch over its devices so that they finish together, by the times of their last
// steps.
//
// It concerns the site alone: its peers only see the times of its steps. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heterogeneity/knowledge/batch_split.h"

namespace farstep {

class DeviceBalance {
 public:
  // `sequence_seconds` is the time of a sequence by device; nullopt if unknown. It must not be
  // empty, and all times must be above 0.
  explicit DeviceBalance(std::vector<std::optional<double>> sequence_seconds)
      : sequence_seconds_(std::move(sequence_seconds)) {}

  // Returns the number of sequences of each device in a step of `batch`. The split stays until
  // another one makes the step shorter by more than a few percent, so that noise does not change
  // it.
  const std::vector<int64_t>& shares(int64_t batch);

  // Adds each device's time for its share of the last step.
  void observe(std::span<const double> device_seconds);

 private:
  // Returns the cost by device. A device without a measured time counts as fast as the fastest.
  std::vector<heterogeneity::DeviceCost> costs() const;

  std::vector<std::optional<double>> sequence_seconds_;  // moving average
  std::vector<int64_t> shares_;
};

}  // namespace farstep
