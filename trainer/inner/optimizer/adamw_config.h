// Settings of AdamW (`inner.adamw` of a run file).
#pragma once

#include "trainer/config/fields.h"

namespace farstep {

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("beta1", beta1, "decay of the first moment", in_range(0, 0.999999));
    visit("beta2", beta2, "decay of the second moment", in_range(0, 0.999999));
    visit("epsilon", epsilon, "added to the root of the second moment", above(0));
    visit("weight_decay", weight_decay, "decoupled decay of matrices; norms have none",
          at_least(0));
  }
};

}  // namespace farstep
