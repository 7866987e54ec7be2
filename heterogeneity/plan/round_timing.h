// What a site measures of its own round and links for the next plan, and when a round by deadline
// is over.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace farstep {

// One site's round, as all sites get to know it.
struct RoundTiming {
  int64_t steps = 0;  // 0: the site had no part in it
  int64_t batch = 0, micro_batch = 0;
  double step_seconds = 0;      // typical_step_seconds() of its steps
  double overhead_seconds = 0;  // its own time before the sync that was not steps
  // Of the site's links; 0: not known.
  double uplink_bits_per_second = 0, rtt_seconds = 0;
};

// The step time to expect next: the mean of `steps` (in their order, not empty) or of their second
// half, whichever is longer; rare hiccups are left out. So a site that becomes slower is seen in
// full at once. One that becomes faster is believed when a whole round was: sites on one machine
// get faster whenever another one waits, and would be given work that they cannot do together.
double typical_step_seconds(std::span<const double> steps);

// Whether a round that is to last `round_seconds` has room for one more step: `elapsed_seconds`
// after its start, a step of `step_seconds` ends at most `slack_seconds` late.
bool has_room_for_step(double round_seconds, double elapsed_seconds, double step_seconds,
                       double slack_seconds);

}  // namespace farstep
