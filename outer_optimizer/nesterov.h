// The outer step of DiLoCo (Douillard et al. 2023, algorithm 1), as torch.optim.SGD(nesterov=True)
// computes it:
//   m     <- mu m + mean
//   theta <- theta - eta (mean + mu m)
// Pure functions on fp32 memory; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/base/checksum.h"

namespace farstep::outer_optimizer {

struct NesterovSettings {
  float learning_rate = 0.7F;  // eta
  float momentum = 0.9F;       // mu
};

// Updates theta and its momentum in place. All three have the same length.
void nesterov_step(const NesterovSettings& settings, std::span<const float> mean,
                   std::span<float> theta, std::span<float> momentum);

// Adds to `checksum` the theta that nesterov_step() would compute, without changing anything. Sites
// compare it before a sync is committed.
void checksum_nesterov_step(const NesterovSettings& settings, std::span<const float> mean,
                            std::span<const float> theta, std::span<const float> momentum,
                            StreamingChecksum& checksum);

}  // namespace farstep::outer_optimizer
