#include "heterogeneity/plan/batch_split.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Sequences that a device is done with `seconds` after the start of the step.
int64_t done_at(double seconds, const DeviceCost& device, int64_t batch) {
  const double sequences = std::floor((seconds - device.fixed_seconds) / device.sequence_seconds);
  return static_cast<int64_t>(std::clamp(sequences, 0.0, static_cast<double>(batch)));
}

// Halvings that bring the level closer to the best one than any two finish times.
constexpr int kHalvings = 64;

}  // namespace

std::vector<int64_t> split_batch(int64_t batch, std::span<const DeviceCost> devices) {
  FARSTEP_CHECK(!devices.empty() && batch >= 0, "{} sequences over {} devices", batch,
                devices.size());
  for (const auto& device : devices) {
    FARSTEP_CHECK(device.fixed_seconds >= 0 && device.sequence_seconds > 0,
                  "a device of {} + {} s a sequence", device.fixed_seconds,
                  device.sequence_seconds);
  }
  // Everybody works up to a common level below the best finish time; what is left then goes one by
  // one to whoever is done with it first.
  double level = 0;
  double above =
      devices[0].fixed_seconds + devices[0].sequence_seconds * (static_cast<double>(batch) + 1);
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = (level + above) / 2;
    int64_t done = 0;
    for (const auto& device : devices) done += done_at(middle, device, batch + 1);
    (done <= batch ? level : above) = middle;
  }
  std::vector<int64_t> shares;
  int64_t left = batch;
  for (const auto& device : devices) {
    shares.push_back(std::min(left, done_at(level, device, batch)));
    left -= shares.back();
  }
  const auto next_finish = [&](std::size_t device) {
    return devices[device].fixed_seconds +
           devices[device].sequence_seconds * static_cast<double>(shares[device] + 1);
  };
  for (; left > 0; --left) {
    std::size_t first = 0;
    for (std::size_t device = 1; device < devices.size(); ++device) {
      if (next_finish(device) < next_finish(first)) first = device;
    }
    ++shares[first];
  }
  return shares;
}

}  // namespace farstep
