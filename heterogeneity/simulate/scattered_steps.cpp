#include "heterogeneity/simulate/scattered_steps.h"

#include <algorithm>
#include <numeric>

namespace farstep::heterogeneity {

ScatteredSteps::ScatteredSteps(const Scenario& scenario, const Network& network)
    : scenario_(scenario),
      network_(network),
      master_(scenario.master()),
      bytes_(scenario.sites.size()) {}

void ScatteredSteps::plan(std::span<const int64_t> batches) {
  if (!scenario_.strategy.scatter) return;
  for (std::size_t site = 0; site < bytes_.size(); ++site) {
    bytes_[site] = site == master_ ? 0 : batches[site] * *scenario_.example_bytes;
  }
  cost_ = network_.scatter_cost(master_, bytes_);
}

void ScatteredSteps::send(double now_seconds) {
  if (!scenario_.strategy.scatter) return;
  sent_seconds_ = std::max(now_seconds, line_free_seconds_);
  line_free_seconds_ = sent_seconds_ + cost_.left_seconds;
}

double ScatteredSteps::arrival_seconds(std::size_t site) const {
  if (!scenario_.strategy.scatter || site == master_) return 0;
  return sent_seconds_ + cost_.arrival_seconds[site];
}

int64_t ScatteredSteps::sent_bytes(std::size_t site) const {
  return site == master_ ? std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0}) : 0;
}

}  // namespace farstep::heterogeneity
