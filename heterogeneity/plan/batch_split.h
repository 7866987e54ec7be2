// Splits an inner step's batch over the devices of a site so that they finish together.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace farstep {

// What one device needs for its share of a step.
struct DeviceCost {
  double fixed_seconds = 0;
  double sequence_seconds = 0;  // above 0
};

// Sequences of each device, in their order, adding up to `batch`: the split whose slowest device
// is done soonest; a device may get none. Equal devices get equal shares up to one, the first ones
// more. `devices` is not empty, `batch` at least 0.
std::vector<int64_t> split_batch(int64_t batch, std::span<const DeviceCost> devices);

}  // namespace farstep
