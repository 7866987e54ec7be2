// Settings of the planner (`plan` of a run file), and the sites that take part with what the run
// file pins of their work (`sites`).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trainer/config/fields.h"

namespace farstep::heterogeneity {

enum class Policy { kUniform, kBatchByTflops, kBatchByMemory, kStepsByTflops, kHybrid };
inline std::span<const std::string_view> enum_names(Policy) {
  static constexpr std::array<std::string_view, 5> kNames{
      "uniform", "batch_by_tflops", "batch_by_memory", "steps_by_tflops", "hybrid"};
  return kNames;
}

enum class RoundEnd { kSteps, kDeadline };
inline std::span<const std::string_view> enum_names(RoundEnd) {
  static constexpr std::array<std::string_view, 2> kNames{"steps", "deadline"};
  return kNames;
}

enum class LearningRateRule { kNone, kSqrt };
inline std::span<const std::string_view> enum_names(LearningRateRule) {
  static constexpr std::array<std::string_view, 2> kNames{"none", "sqrt"};
  return kNames;
}

// How the base batch follows the gradient noise scale (batch_growth.h).
struct BatchGrowth {
  int64_t most_batch = 1;
  double most_factor = 2;
  LearningRateRule learning_rate = LearningRateRule::kNone;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("most_batch", most_batch, "largest base batch", required(in_range(1, 1e9)));
    visit("most_factor", most_factor, "by how much it grows from a round to the next at most",
          in_range(1, 16));
    visit("learning_rate", learning_rate,
          "sqrt: inner learning rates grow with the root of the base batch; none: they stay");
  }
};

struct PlanConfig {
  Policy policy = Policy::kUniform;
  int64_t base_steps = 100;
  int64_t base_batch = 4;
  std::optional<int64_t> micro_batch;
  std::optional<int64_t> critical_batch;
  std::optional<BatchGrowth> batch_growth;
  std::optional<int64_t> most_steps;
  std::optional<double> round_seconds;
  bool replan = true;
  RoundEnd round_end = RoundEnd::kSteps;
  double slack_fraction = 0.01;
  std::optional<double> wan_target;
  // Whether all sites must take the same number of steps, as the run's strategy says. No setting of
  // its own: hybrid then balances the sites by their batches.
  bool equal_steps = false;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("policy", policy, "how the sites share the work");
    visit("base_steps", base_steps, "local steps of a round; of the slowest site where they differ",
          at_least(1));
    visit("base_batch", base_batch, "sequences of one inner step of a site", at_least(1));
    visit("micro_batch", micro_batch,
          "sequences of one forward and backward on a device; null leaves it to the policy",
          at_least(1));
    visit("critical_batch", critical_batch,
          "most sequences that all sites' inner steps together may have, up to which hybrid raises "
          "batches; null keeps base_batch",
          at_least(1));
    visit("batch_growth", batch_growth,
          "lets base_batch grow from round to round, while all sites' batches together are smaller "
          "than the measured gradient noise scale; null keeps it");
    visit(
        "most_steps", most_steps,
        "most local steps of a site under hybrid: a site that is too slow for it takes fewer than "
        "base_steps; null: 1000, or 2.5 times base_steps if that is more",
        at_least(1));
    visit("round_seconds", round_seconds,
          "longest round under hybrid, without the exchange: a site that is too slow for it takes "
          "fewer than base_steps; null: as most_steps allows",
          above(0));
    visit("replan", replan, "hybrid plans every round from the step times of those before");
    visit(
        "round_end", round_end,
        "steps: a site ends a round after its local steps; deadline: when the planned time is up");
    visit("slack_fraction", slack_fraction,
          "by how much of a round its last step may end after the deadline", in_range(0, 0.5));
    visit("wan_target", wan_target,
          "largest share of a round that may be exposed WAN time: from profiled and measured links "
          "the sites choose codec, fragments and delay_steps by it; null leaves sync as it is",
          in_range(1e-6, 0.999999));
  }
};

// A site that takes part, and what it does differently from the plan's base.
struct RunSite {
  std::string name;
  std::optional<int64_t> local_steps, batch, micro_batch;
  bool trains = true;

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("name", name, "name of the site, as in its own config", kRequired);
    visit("trains", trains,
          "false: it serves alone, with strategy.kind parameter_server: it adds up gradients, and "
          "its own config needs neither devices nor data");
    visit("local_steps", local_steps, "its local steps; null is plan.base_steps", at_least(1));
    visit("batch", batch, "its batch; null is plan.base_batch", at_least(1));
    visit("micro_batch", micro_batch, "its micro-batch; null is plan.micro_batch", at_least(1));
  }
};

}  // namespace farstep::heterogeneity
