// All devices of a site should finish a step together. With a cost that is linear in the sequences
// the common finish has a closed form; whole sequences are dealt out from there.
#include "heterogeneity/knowledge/batch_split.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/base/error.h"

namespace farstep::heterogeneity {

namespace {

// Returns the finish time if sequences could be divided: the F for which the devices' (F - fixed) /
// sequence add up to the batch. Devices whose fixed cost alone takes longer get no part. Leaving
// one out makes the time shorter, which may exclude another one, hence the iteration. It ends
// because devices only drop out.
double common_finish(int64_t batch, std::span<const DeviceCost> devices) {
  double finish = std::numeric_limits<double>::infinity();
  while (true) {
    double work = static_cast<double>(batch);
    double speed = 0;
    for (const auto& device : devices) {
      if (device.fixed_seconds >= finish) continue;
      work += device.fixed_seconds / device.sequence_seconds;
      speed += 1 / device.sequence_seconds;
    }
    const double sooner = work / speed;
    if (!(sooner < finish)) return finish;
    finish = sooner;
  }
}

}  // namespace

std::vector<int64_t> split_batch(int64_t batch, std::span<const DeviceCost> devices) {
  FARSTEP_CHECK(!devices.empty() && batch >= 0, "{} sequences over {} devices", batch,
                devices.size());
  for (const auto& device : devices) {
    FARSTEP_CHECK(device.fixed_seconds >= 0 && device.sequence_seconds > 0,
                  "a device of {} + {} s a sequence", device.fixed_seconds,
                  device.sequence_seconds);
  }
  // Rounding down leaves less than one sequence for each device. They go one by one to the device
  // that finishes first.
  const double finish = common_finish(batch, devices);
  std::vector<int64_t> shares;
  int64_t left = batch;
  for (const auto& device : devices) {
    const double share = std::floor((finish - device.fixed_seconds) / device.sequence_seconds);
    // The common finish can exceed the batch by rounding.
    shares.push_back(static_cast<int64_t>(std::clamp(share, 0.0, static_cast<double>(left))));
    left -= shares.back();
  }
  const auto next_finish = [&](std::size_t device) {
    return devices[device].fixed_seconds +
           devices[device].sequence_seconds * static_cast<double>(shares[device] + 1);
  };
  // One at a time: at most as many are left as there are devices.
  for (; left > 0; --left) {
    std::size_t first = 0;
    for (std::size_t device = 1; device < devices.size(); ++device) {
      if (next_finish(device) < next_finish(first)) first = device;
    }
    ++shares[first];
  }
  return shares;
}

}  // namespace farstep::heterogeneity
