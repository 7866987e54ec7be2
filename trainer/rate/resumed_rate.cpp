// A new length is read against the schedule, not against the length before. So a run that is held
// can still restart at a later resume, and a crash before the next checkpoint changes nothing.
#include "trainer/rate/resumed_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/error.h"

namespace farstep {

namespace {

double rate_at(const RateConfig& config, const RateCycle& cycle, double position) {
  return config.peak_learning_rate * rate_share(config, cycle, position);
}

// Returns the cycle with another end, and a warm-up of as many rounds.
RateCycle with_end(const RateConfig& config, RateCycle cycle, double end) {
  const double before = cycle.end - cycle.begin, after = end - cycle.begin;
  cycle.warmup_fraction = config.warmup_rounds
                              ? warmup_share(config, after)
                              : std::min(1.0, cycle.warmup_fraction * before / after);
  cycle.end = end;
  return cycle;
}

}  // namespace

RateState rate_state(const RateConfig& config, const RateCycle& cycle, double position) {
  return {.cycle = cycle, .position = position, .learning_rate = rate_at(config, cycle, position)};
}

void require_whole(const RateCycle& cycle) {
  if (cycle.begin < cycle.end) return;
  throw DataError(
      fmt::format("the learning rate's schedule ends after {} rounds, and begins after "
                  "{}",
                  cycle.end, cycle.begin));
}

RateCycle resumed_cycle(const RateConfig& config, const RateState& saved, int64_t rounds) {
  const auto end = static_cast<double>(rounds);
  const auto& [cycle, position, learning_rate] = saved;
  if (end == cycle.end || end <= position) return cycle;
  if (position == 0) return first_cycle(config, rounds);
  if (end < cycle.end || !has_fallen(config, cycle, position)) return with_end(config, cycle, end);
  if (config.extension == RateExtension::kHold) return cycle;
  return {.begin = position,
          .end = end,
          .warmup_fraction = warmup_share(config, end - position),
          .begin_share = rate_share(config, cycle, position)};
}

std::string resumed_rate_text(const RateConfig& config, const RateState& saved,
                              const RateCycle& cycle, int64_t rounds) {
  const auto end = static_cast<double>(rounds);
  const auto last = rate_at(config, cycle, cycle.end);
  if (cycle.end < end) {
    const auto before = rounds_before_decay(config, cycle);
    return fmt::format(
        "outer.rounds is {}, and the learning rate's schedule ends after round {}: from there on "
        "the rate stays at {:.3g}. inner.extension restart lets it rise to the peak again{}",
        rounds, cycle.end, last,
        before
            ? fmt::format("; --resume --from-round={} at all sites goes back to before the decay",
                          *before)
            : "");
  }
  if (cycle == saved.cycle) return "";
  if (cycle.begin != saved.cycle.begin) {
    return fmt::format(
        "the learning rate begins a new schedule (inner.extension restart): it rises from {:.3g} "
        "after {:.4g} rounds to {:.3g}, and falls to {:.3g} until round {}",
        rate_at(config, cycle, cycle.begin), cycle.begin, config.peak_learning_rate, last, rounds);
  }
  return fmt::format("the learning rate's schedule ends after round {} instead of {}{}", cycle.end,
                     saved.cycle.end,
                     config.schedule == RateShape::kWsd
                         ? fmt::format("; the last {} of it decay", config.decay_fraction)
                         : "");
}

std::string joined_rate_text(const RateConfig& config, const RateCycle& cycle, int64_t rounds_done,
                             int64_t rounds) {
  return fmt::format(
      "the learning rate is {:.3g}, and {} round {}",
      rate_at(config, cycle, static_cast<double>(rounds_done)),
      cycle.end < static_cast<double>(rounds) ? "stays as it is after" : "its schedule ends after",
      cycle.end);
}

std::string rate_jump_text(const RateConfig& config, const RateState& saved,
                           const RateCycle& cycle) {
  constexpr double kSame = 1e-6;
  const double before = saved.learning_rate;
  const double now = rate_at(config, cycle, saved.position);
  if (std::abs(now - before) <= kSame * std::max(now, before)) return "";
  return fmt::format(
      "the learning rate goes on at {:.3g} instead of {:.3g}: outer.rounds or a setting of `inner` "
      "is not that of the checkpoint",
      now, before);
}

}  // namespace farstep
