// The steps of a round after which fragments of the model are synced (Streaming DiLoCo, Douillard
// et al. 2025, section 2.2).
//
// A round's fragments follow each other at equal distances in the site's own progress. So sites
// with different numbers of local steps sync a fragment at the same progress. A fragment is sent
// only after the one before it is applied: at most one is under way, and all are applied at the end
// of the round. Values and pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "outer_optimizer/schedule/partition.h"

namespace farstep::outer_optimizer {

class FragmentSchedule {
 public:
  // For a round with `local_steps` inner steps that syncs `fragments` fragments. A fragment is
  // under way for `delay_steps` steps of a site with `base_steps` steps in the round; for other
  // sites the delay is the same share of the round, and at least one step unless it is 0. All
  // arguments but the delay are at least 1.
  FragmentSchedule(int64_t local_steps, int64_t fragments, int64_t delay_steps, int64_t base_steps);

  // Returns the steps of this site for which a fragment is under way.
  int64_t delay_steps() const { return delay_steps_; }

  // Return the inner steps of the round after which the delta of fragment `fragment` (from 0) is
  // taken and its mean applied. 1 <= send_step <= apply_step <= local_steps, and send_step is at
  // least the apply_step of the fragment before.
  int64_t send_step(int64_t fragment) const;
  int64_t apply_step(int64_t fragment) const;

 private:
  int64_t local_steps_;
  int64_t fragments_;
  int64_t delay_steps_;  // of this site
};

}  // namespace farstep::outer_optimizer
