// AdamW: on a CPU in its own code, on any other device by LibTorch's operations.
//
// As in torch: bias correction, epsilon outside the root, decoupled weight decay for the groups
// that decay. On a CPU one pass over memory does all of it. It also writes the bf16 copy of the
// values if the parameters keep one.
#pragma once

#include <span>
#include <vector>

#include "trainer/inner/optimizer/adamw_state.h"
#include "trainer/inner/optimizer/host_optimizer.h"

namespace farstep {

class AdamW : public HostOptimizer {
 public:
  // Updates `groups` of `parameters`, in the layout's order.
  AdamW(const AdamWConfig& config, Parameters& parameters, std::span<const ParameterSpec> groups);

  NamedBuffers pull_state() override { return state_.pull(); }
  void push_state() override { state_.push(); }

 protected:
  void change_values(double learning_rate, double gradient_factor) override;

 private:
  void update_on_cpu(double learning_rate, double gradient_factor);
  void update_by_libtorch(double learning_rate, double gradient_factor);

  const AdamWConfig config_;
  const std::vector<DecayStretch> stretches_;
  AdamWState state_;
};

}  // namespace farstep
