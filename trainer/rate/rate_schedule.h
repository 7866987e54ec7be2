// The inner learning rate as a function of the run's position, so that it is equal at every site.
// A position is the number of rounds done, with the share of the round under way that is done.
//
// Pure functions over values; thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/fields.h"
#include "trainer/rate/rate_config.h"

namespace farstep {

// The part of a run in which its rate follows the schedule once. Usually that is all of the run.
struct RateCycle {
  double begin = 0, end = 1;  // positions
  double warmup_fraction = 0;
  double begin_share = 0;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    constexpr double kMost = 9e18;  // they become whole numbers
    visit("begin", begin, "rounds done at its begin", required(in_range(0, kMost)));
    visit("end", end, "rounds done at its end", required(in_range(0, kMost)));
    visit("warmup_fraction", warmup_fraction, "share of it with rising learning rate",
          required(in_range(0, 1)));
    visit("begin_share", begin_share, "learning rate at its begin, as a share of the peak",
          required(in_range(0, 1)));
  }
  bool operator==(const RateCycle&) const = default;
};

// Returns the cycle of a run that begins with so many rounds.
RateCycle first_cycle(const RateConfig& config, int64_t rounds);

// Returns warmup_rounds or warmup_fraction as a share of so many rounds, 1 at most.
double warmup_share(const RateConfig& config, double rounds);

// Returns the position after so many whole rounds and steps of the next, which has `local_steps` or
// more at this site. By the share of the site's own steps: sites of unequal speed have the same
// rate when they sync.
double position_after(int64_t rounds, int64_t steps, int64_t local_steps);

// Returns the learning rate at the position as a share of the peak, in [0, 1]. It is linear from
// begin_share to 1 over the warm-up. Over the descent it is f + (1 - f) s(d). There f is
// final_fraction, and d goes from 0 to 1.
//
// With a cosine, s(d) = (1 + cos(pi d)) / 2, and the descent follows the warm-up at once. With wsd,
// s(d) = 1 - sqrt(d), and the descent is the last decay_fraction of the cycle; before, the rate is
// at its peak. (Haegele et al., "Scaling Laws and Compute-Optimal Training Beyond Fixed Training
// Durations", 2024; the schedule is of MiniCPM, Hu et al., 2024.)
//
// After the cycle it stays at f, or at the peak if all of the cycle is warm-up.
double rate_share(const RateConfig& config, const RateCycle& cycle, double position);

// Returns whether the rate has begun to fall before the position.
bool has_fallen(const RateConfig& config, const RateCycle& cycle, double position);

// Returns the last number of whole rounds after which the rate of wsd has not begun to fall;
// nullopt with cosine, whose rate falls at once.
std::optional<int64_t> rounds_before_decay(const RateConfig& config, const RateCycle& cycle);

}  // namespace farstep
