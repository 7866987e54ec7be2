// Plain gradient descent, for tests of identities: values minus learning rate times gradients.
#pragma once

#include <span>
#include <vector>

#include "trainer/inner/optimizer/host_optimizer.h"

namespace farstep {

// It has no state.
class Sgd : public HostOptimizer {
 public:
  // Updates `groups` of `parameters`, in the layout's order.
  Sgd(Parameters& parameters, std::span<const ParameterSpec> groups);

  NamedBuffers pull_state() override { return {}; }
  void push_state() override {}

 protected:
  void change_values(double learning_rate, double gradient_factor) override;

 private:
  struct Range {
    int64_t begin = 0, end = 0;  // in the flat vectors
  };
  std::vector<Range> ranges_;
};

}  // namespace farstep
