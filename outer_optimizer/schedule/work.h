// The training that a site's delta stands for: what the averaging weights are made from.
#pragma once

#include <cstdint>

#include "trainer/config/fields.h"

namespace farstep::outer_optimizer {

struct Work {
  int64_t steps = 0;   // inner steps since the last sync; 0 for a joiner that brings nothing
  int64_t batch = 0;   // sequences of an inner step
  int64_t tokens = 0;  // trained since the last sync
  // Planned steps that are not among them, because the site was asked to stop.
  int64_t missing_steps = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("steps", steps, "inner steps since the fragment was last applied", required(at_least(0)));
    visit("batch", batch, "sequences of an inner step", required(at_least(0)));
    visit("tokens", tokens, "tokens of these steps", required(at_least(0)));
    visit("missing_steps", missing_steps,
          "planned steps that the site left out because it was asked to stop", at_least(0));
  }
  bool operator==(const Work&) const = default;
};

}  // namespace farstep::outer_optimizer
