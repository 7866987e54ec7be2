// Divides an inner step's batch between the devices of a site so that they finish together.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace farstep::heterogeneity {

// The time of one device for its part of a step.
struct DeviceCost {
  double fixed_seconds = 0;
  double sequence_seconds = 0;  // above 0
};

// Returns the sequences of each device, in their order, with the sum `batch`: the split whose
// slowest device finishes first. A device may get none. Equal devices get equal numbers; a
// remainder goes to the first ones. `devices` is not empty, `batch` at least 0.
std::vector<int64_t> split_batch(int64_t batch, std::span<const DeviceCost> devices);

}  // namespace farstep::heterogeneity
