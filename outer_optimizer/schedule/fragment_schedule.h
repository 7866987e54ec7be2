// When the fragments of the model are synced in a round (Streaming DiLoCo, Douillard et al. 2025,
// section 2.2).
//
// A round's fragments follow each other at equal distances in the site's own progress, so that
// sites with different numbers of local steps sync the same fragment at the same progress. A
// fragment is sent no earlier than the one before it is applied: one at most is under way, and all
// are applied when the round ends. Values and pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "outer_optimizer/schedule/partition.h"

namespace farstep {

class FragmentSchedule {
 public:
  // Of a round with `local_steps` inner steps, in which `fragments` fragments are synced; a
  // fragment is under way for `delay_steps` steps of a site that takes `base_steps` of them a
  // round, which are as long a part of any other site's round, and at least one step where that is
  // above 0. All but the delay must be at least 1.
  FragmentSchedule(int64_t local_steps, int64_t fragments, int64_t delay_steps, int64_t base_steps);

  // Inner steps of the round after which the delta of fragment `fragment` (from 0) is taken, and
  // after which its mean is applied: 1 <= send_step <= apply_step <= local_steps, and send_step is
  // at least the apply_step of the fragment before.
  int64_t send_step(int64_t fragment) const;
  int64_t apply_step(int64_t fragment) const;

 private:
  int64_t local_steps_;
  int64_t fragments_;
  int64_t delay_steps_;  // of this site
};

}  // namespace farstep
