// The outer step of DiLoCo (Douillard et al. 2023, algorithm 1), and the step that ends a run. Pure
// functions on fp32 memory; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/base/checksum.h"

namespace farstep::outer_optimizer {

// A step sets m <- mu m + mean first, as torch.optim.SGD(nesterov=True) does.
enum class OuterStep {
  kNesterov,  // theta <- theta - eta (mean + mu m), as that optimizer does
  // theta <- theta - mean. That is the mean of the sites' models if their weights sum to 1.
  kMean,
};

struct NesterovSettings {
  float learning_rate = 0.7F;  // eta
  float momentum = 0.9F;       // mu
};

// Updates theta and its momentum in place. All three have the same length.
void take_outer_step(OuterStep step, const NesterovSettings& settings, std::span<const float> mean,
                     std::span<float> theta, std::span<float> momentum);

// Adds to `checksum` the theta that take_outer_step() would compute, without changing anything.
// Sites compare it before a sync is committed.
void checksum_outer_step(OuterStep step, const NesterovSettings& settings,
                         std::span<const float> mean, std::span<const float> theta,
                         std::span<const float> momentum, StreamingChecksum& checksum);

}  // namespace farstep::outer_optimizer
