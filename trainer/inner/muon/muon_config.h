// Settings of Muon (`inner.muon` of a run file).
#pragma once

#include <cstdint>

#include "trainer/config/fields.h"

namespace farstep {

struct MuonConfig {
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  int64_t iterations = 5;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("momentum", momentum, "decay of the mean of the gradients", in_range(0, 0.999999));
    visit("nesterov", nesterov,
          "the update is made from gradient and mean together; else from the mean");
    visit("weight_decay", weight_decay, "decoupled decay of the hidden matrices", at_least(0));
    visit("iterations", iterations,
          "Newton-Schulz iterations, each of three matrix products in bf16", in_range(1, 20));
  }
};

}  // namespace farstep
