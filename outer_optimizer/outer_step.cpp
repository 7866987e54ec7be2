#include "outer_optimizer/outer_step.h"

#include <algorithm>
#include <vector>

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

// All is fp32: bf16 would lose deltas that are small beside their weights. The learning rate
// multiplies last, as in torch.optim.SGD, so the momentum does not depend on it. The step to the
// mean updates the momentum too: a run that is continued beyond its last round needs it.
void take_outer_step(OuterStep step, const NesterovSettings& settings, std::span<const float> mean,
                     std::span<float> theta, std::span<float> momentum) {
  FARSTEP_CHECK(mean.size() == theta.size() && mean.size() == momentum.size(),
                "mean, theta and momentum have {}, {} and {} values", mean.size(), theta.size(),
                momentum.size());
  const bool to_mean = step == OuterStep::kMean;
  const float eta = to_mean ? 1 : settings.learning_rate;
  const float ahead = to_mean ? 0 : settings.momentum;
  for (std::size_t k = 0; k < mean.size(); ++k) {
    momentum[k] = settings.momentum * momentum[k] + mean[k];
    theta[k] -= eta * (mean[k] + ahead * momentum[k]);
  }
}

void checksum_outer_step(OuterStep step, const NesterovSettings& settings,
                         std::span<const float> mean, std::span<const float> theta,
                         std::span<const float> momentum, StreamingChecksum& checksum) {
  // In chunks that fit the cache, so that no copy of all values is needed. 64 KiB for each of the
  // two copies.
  constexpr std::size_t kChunk = 16384;
  std::vector<float> next_theta, next_momentum;
  for (std::size_t begin = 0; begin < theta.size(); begin += kChunk) {
    const std::size_t size = std::min(kChunk, theta.size() - begin);
    const auto old_theta = theta.subspan(begin, size);
    const auto old_momentum = momentum.subspan(begin, size);
    next_theta.assign(old_theta.begin(), old_theta.end());
    next_momentum.assign(old_momentum.begin(), old_momentum.end());
    // The same function as the real step, so the hash is of the bits that the step will make.
    take_outer_step(step, settings, mean.subspan(begin, size), next_theta, next_momentum);
    checksum.update(std::as_bytes(std::span(next_theta)));
  }
}

}  // namespace farstep::outer_optimizer
