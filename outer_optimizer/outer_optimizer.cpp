#include "outer_optimizer/outer_optimizer.h"

#include <cmath>

#include "trainer/base/checksum.h"
#include "trainer/base/error.h"

namespace farstep {

OuterOptimizer::OuterOptimizer(const NesterovSettings& settings, std::span<const float> theta)
    : settings_(settings), theta_global_(theta.begin(), theta.end()), momentum_(theta.size()) {}

int64_t OuterOptimizer::delta(std::span<const float> theta_local, std::span<float> delta) const {
  FARSTEP_CHECK(theta_local.size() == theta_global_.size() && delta.size() == theta_global_.size(),
                "theta_local and delta have {} and {} values, theta_global has {}",
                theta_local.size(), delta.size(), theta_global_.size());
  int64_t first_bad = -1;
  for (std::size_t k = 0; k < delta.size(); ++k) {
    delta[k] = theta_global_[k] - theta_local[k];
    if (!std::isfinite(delta[k]) && first_bad < 0) first_bad = static_cast<int64_t>(k);
  }
  return first_bad;
}

uint64_t OuterOptimizer::checksum() const {
  return farstep::checksum(std::as_bytes(std::span(theta_global_)));
}

uint64_t OuterOptimizer::checksum_after(std::span<const float> mean) const {
  return checksum_after_nesterov_step(settings_, mean, theta_global_, momentum_);
}

void OuterOptimizer::apply(std::span<const float> mean) {
  nesterov_step(settings_, mean, theta_global_, momentum_);
}

}  // namespace farstep
