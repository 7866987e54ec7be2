// Devices of one site meet after every step, so their shares of the batch must end together. The
// split follows a moving average of their times, and changes only for a gain that is worth new
// buffers.
#include "trainer/inner/device_balance.h"

#include <algorithm>
#include <numeric>

#include "trainer/base/error.h"

namespace farstep {

namespace {

// Weight of the newest step in the moving average. After ten steps a change of speed counts by 97
// %, and one slow step moves the average by less than a third of its excess.
constexpr double kWeightOfNewest = 0.3;
// Share of a step's time that another split must save. A device's step times vary by one or two
// percent without a cause, and each new split allocates new buffers.
constexpr double kLeastGain = 0.03;

double step_seconds(std::span<const int64_t> shares,
                    std::span<const heterogeneity::DeviceCost> costs) {
  double longest = 0;
  for (std::size_t device = 0; device < shares.size(); ++device) {
    longest =
        std::max(longest, static_cast<double>(shares[device]) * costs[device].sequence_seconds);
  }
  return longest;
}

}  // namespace

const std::vector<int64_t>& DeviceBalance::shares(int64_t batch) {
  const auto costs = this->costs();
  auto best = split_batch(batch, costs);
  const bool is_batch = std::accumulate(shares_.begin(), shares_.end(), int64_t{0}) == batch;
  if (!is_batch || step_seconds(best, costs) < (1 - kLeastGain) * step_seconds(shares_, costs)) {
    shares_ = std::move(best);
  }
  return shares_;
}

void DeviceBalance::observe(std::span<const double> device_seconds) {
  FARSTEP_CHECK(device_seconds.size() == shares_.size(), "times of {} devices for {} shares",
                device_seconds.size(), shares_.size());
  for (std::size_t device = 0; device < shares_.size(); ++device) {
    if (shares_[device] == 0) continue;  // no measurement of its speed
    const double seen = device_seconds[device] / static_cast<double>(shares_[device]);
    auto& known = sequence_seconds_[device];
    known = known ? *known + kWeightOfNewest * (seen - *known) : seen;
  }
}

// A device without a measurement counts as the fastest, so that it gets a share and is measured.
std::vector<heterogeneity::DeviceCost> DeviceBalance::costs() const {
  std::optional<double> fastest;
  for (const auto& seconds : sequence_seconds_) {
    if (seconds) fastest = std::min(*seconds, fastest.value_or(*seconds));
  }
  std::vector<heterogeneity::DeviceCost> costs;
  for (const auto& seconds : sequence_seconds_) {
    costs.push_back({.sequence_seconds = seconds.value_or(fastest.value_or(1))});
  }
  return costs;
}

}  // namespace farstep
