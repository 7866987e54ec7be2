// The outer step as torch.optim.SGD(nesterov=True) has it, on plain fp32 memory:
//   m     <- mu m + mean
//   theta <- theta - eta (mean + mu m)
// (DiLoCo, Douillard et al. 2023, algorithm 1.) Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/base/checksum.h"

namespace farstep {

struct NesterovSettings {
  float learning_rate = 0.7F;  // eta
  float momentum = 0.9F;       // mu
};

// Updates theta and its momentum in place; all three have one length.
void nesterov_step(const NesterovSettings& settings, std::span<const float> mean,
                   std::span<float> theta, std::span<float> momentum);

// Adds to `checksum` the theta that would be there after nesterov_step, without changing anything:
// what a site shows the others before a sync is committed.
void checksum_nesterov_step(const NesterovSettings& settings, std::span<const float> mean,
                            std::span<const float> theta, std::span<const float> momentum,
                            StreamingChecksum& checksum);

}  // namespace farstep
