// AdamW's state between steps and its factors of a step. Both implementations share them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/base/memory/named_buffers.h"
#include "trainer/inner/optimizer/adamw_config.h"
#include "trainer/kernels/adamw.h"
#include "trainer/model/parameters/host_mirror.h"
#include "trainer/model/parameters/parameter_layout.h"

namespace farstep {

// Returns zeros for all elements of the groups, one group after the other without gaps (fp32).
at::Tensor zeros_for(std::span<const ParameterSpec> groups, at::Device device);

// Both moments of some groups of parameters, one group after the other without gaps, and the number
// of updates.
class AdamWState {
 public:
  // Makes a state of zeros on `device`.
  AdamWState(std::span<const ParameterSpec> groups, at::Device device);

  at::Tensor first_moment, second_moment;
  int64_t step = 0;

  // "exp_avg" and "exp_avg_sq", flat, and "step", as in Optimizer::pull_state().
  NamedBuffers pull();
  void push();

 private:
  HostMirror host_first_, host_second_;
};

// Returns the factors of update `number`, counted from 1.
AdamWStep adamw_step(const AdamWConfig& config, int64_t number, double learning_rate,
                     double gradient_factor);

// Returns the groups as stretches: adjacent groups with equal decay are one stretch.
std::vector<DecayStretch> decay_stretches(std::span<const ParameterSpec> groups);

}  // namespace farstep
