#include "outer_optimizer/schedule/fragment_schedule.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace farstep::outer_optimizer {

// Streaming DiLoCo (Douillard et al. 2025) counts steps, which are equal at all its sites. Here a
// fragment is due at a share of the site's own steps, so that sites of unequal speed meet at the
// same moment.
FragmentSchedule::FragmentSchedule(int64_t local_steps, int64_t fragments, int64_t delay_steps,
                                   int64_t base_steps)
    : local_steps_(local_steps), fragments_(fragments), delay_steps_(0) {
  FARSTEP_CHECK(local_steps >= 1 && fragments >= 1 && delay_steps >= 0 && base_steps >= 1,
                "{} local steps, {} fragments, a delay of {} of {} steps", local_steps, fragments,
                delay_steps, base_steps);
  if (delay_steps > 0) {
    // The delay is a share of the round as well. A fast site takes more steps in the time of a
    // sync. In integers, so that all sites round alike: (2 a + b) / 2 b is a / b to the nearest.
    const int64_t nearest = (2 * delay_steps * local_steps + base_steps) / (2 * base_steps);
    delay_steps_ = std::max<int64_t>(1, nearest);
  }
}

int64_t FragmentSchedule::send_step(int64_t fragment) const {
  // Only one fragment is under way, so the next is sent when the one before is applied.
  const int64_t earliest = fragment == 0 ? 1 : apply_step(fragment - 1);
  return std::max(earliest, apply_step(fragment) - delay_steps_);
}

int64_t FragmentSchedule::apply_step(int64_t fragment) const {
  const auto part =
      equal_part(local_steps_, static_cast<int>(fragment), static_cast<int>(fragments_));
  return std::max<int64_t>(1, part.end);  // before the first step there is no delta
}

}  // namespace farstep::outer_optimizer
