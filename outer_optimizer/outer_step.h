// The outer step of DiLoCo (Douillard et al. 2023, algorithm 1), as torch.optim.SGD(nesterov=True)
// computes it, and the step that ends a run:
//   m     <- mu m + mean
//   theta <- theta - eta (mean + mu m)    kNesterov
//   theta <- theta - mean                 kMean
// The latter is the mean of the sites' models, if all began at theta and the weights sum to 1.
//
// Pure functions on fp32 memory; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/base/checksum.h"

namespace farstep::outer_optimizer {

enum class OuterStep { kNesterov, kMean };

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
