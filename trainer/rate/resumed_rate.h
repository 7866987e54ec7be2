// What becomes of a run's learning rate when the run goes on with other settings.
//
// The rate never rises again unless the run file says so: a run that is made longer has spent its
// peak, and a high rate would undo much of what the descent has learned.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/config/fields.h"
#include "trainer/rate/rate_schedule.h"

namespace farstep {

// A site's place in the schedule, as its checkpoint has it.
struct RateState {
  RateCycle cycle;
  double position = 0;
  double learning_rate = 0;  // the schedule's

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("cycle", cycle, "the part of the run in which the rate follows the schedule once",
          kRequired);
    visit("position", position, "rounds done, with the share of the next one that is done",
          required(at_least(0)));
    visit("learning_rate", learning_rate, "that of the schedule there", required(at_least(0)));
  }
};

RateState rate_state(const RateConfig& config, const RateCycle& cycle, double position);

// Throws DataError if the cycle ends before it begins.
void require_whole(const RateCycle& cycle);

// Returns the cycle of a run of `rounds` that goes on from `saved`. A rate that has not fallen yet
// gets the new length, as if it had been planned so; its warm-up stays as many rounds as it was.
// One that has fallen follows config.extension in a longer run, and is brought to its end earlier
// in a shorter one. If the run is over at that position, the cycle stays.
RateCycle resumed_cycle(const RateConfig& config, const RateState& saved, int64_t rounds);

// Returns in words what the resume has made of the schedule, or that the run is longer than it;
// empty: nothing.
std::string resumed_rate_text(const RateConfig& config, const RateState& saved,
                              const RateCycle& cycle, int64_t rounds);

// Returns in words at which rate a site begins that comes to a run of `rounds` after some of them,
// and how long its schedule is.
std::string joined_rate_text(const RateConfig& config, const RateCycle& cycle, int64_t rounds_done,
                             int64_t rounds);

// Returns in words that the rate differs from that at which a site's checkpoint was saved; empty:
// it does not. Then a setting has changed besides the run's length.
std::string rate_jump_text(const RateConfig& config, const RateState& saved,
                           const RateCycle& cycle);

}  // namespace farstep
