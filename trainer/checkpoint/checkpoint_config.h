// How often checkpoints are written and how many stay (`checkpoint` of a run file).
#pragma once

#include <cstdint>

#include "trainer/config/fields.h"

namespace farstep {

struct CheckpointConfig {
  int64_t every_rounds = 1;
  int64_t keep = 2;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("every_rounds", every_rounds, "rounds between two checkpoints", at_least(1));
    visit("keep", keep,
          "newest checkpoints that stay on the disk; with inner.schedule wsd the one before the "
          "decay too, and with evaluate.on_rise stop or go_back the one before a rise",
          at_least(2));
  }
};

}  // namespace farstep
