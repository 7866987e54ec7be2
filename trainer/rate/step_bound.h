// How far an inner step can move a value. A value; thread-safe.
#pragma once

namespace farstep {

// A step of learning rate r moves a value v by at most r (per_rate + weight_decay |v|). A per_rate
// of 0: unknown.
struct StepBound {
  double per_rate = 0, weight_decay = 0;
};

}  // namespace farstep
