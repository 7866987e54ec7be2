#include "heterogeneity/policy/round_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/config/json_fields.h"
#include "trainer/telemetry/figure_text.h"

namespace farstep::heterogeneity {

namespace {

// Who asks for long rounds gets them. Sites whose speeds differ by so much still fill them.
constexpr double kUsualSpread = 2.5;

}  // namespace

int64_t most_local_steps(const PlanConfig& config) {
  if (config.most_steps) return *config.most_steps;
  const double wide = std::floor(kUsualSpread * static_cast<double>(config.base_steps));
  return std::max(kMostStudiedSteps, static_cast<int64_t>(wide));
}

RoundBound round_bound(const PlanConfig& config, std::span<const Pace> paces, bool in_seconds) {
  const int64_t most_steps = most_local_steps(config);
  RoundBound bound{.seconds = std::numeric_limits<double>::infinity(),
                   .reason = fmt::format("no site takes more than {} steps (plan.most_steps)",
                                         count_text(most_steps))};
  for (const auto& pace : paces) {
    bound.seconds = std::min(
        bound.seconds, pace.overhead_seconds + static_cast<double>(most_steps) * pace.step_seconds);
  }
  if (in_seconds && config.round_seconds && *config.round_seconds < bound.seconds) {
    bound = {.seconds = *config.round_seconds,
             .reason = fmt::format("no round takes longer than {} (plan.round_seconds)",
                                   duration_text(*config.round_seconds))};
  }
  return bound;
}

void check_round_bound(const PlanConfig& config, const std::string& file) {
  const JsonPath path{file, "plan"};
  const char* given = config.most_steps      ? "most_steps"
                      : config.round_seconds ? "round_seconds"
                                             : nullptr;
  if (!given) return;
  if (config.policy != Policy::kHybrid) {
    path.member(given).fail(
        fmt::format("is given, but plan.policy {} does not obey it; take hybrid, or leave it out",
                    name_of(config.policy)));
  }
  if (config.equal_steps) {
    path.member(given).fail(
        "is given, but with this strategy all sites take plan.base_steps together; leave it out");
  }
  if (config.most_steps && *config.most_steps < config.base_steps) {
    path.member("most_steps")
        .fail(fmt::format("is {}; must be at least plan.base_steps, {}", *config.most_steps,
                          config.base_steps));
  }
}

}  // namespace farstep::heterogeneity
