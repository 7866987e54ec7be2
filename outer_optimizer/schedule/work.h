// The training that a site's delta stands for: what the averaging weights are made from.
#pragma once

#include <cstdint>

#include "trainer/config/fields.h"

namespace farstep {

struct Work {
  int64_t steps = 0;   // inner steps since the last sync; 0 for a joiner that brings nothing
  int64_t batch = 0;   // sequences of an inner step
  int64_t tokens = 0;  // trained since the last sync

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("steps", steps, "inner steps since the fragment was last applied", required(at_least(0)));
    visit("batch", batch, "sequences of an inner step", required(at_least(0)));
    visit("tokens", tokens, "tokens of these steps", required(at_least(0)));
  }
  bool operator==(const Work&) const = default;
};

}  // namespace farstep
