// The training that a site's delta stands for: what the averaging weights are made from.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/fields.h"

namespace farstep::outer_optimizer {

struct Work {
  int64_t steps = 0;   // inner steps since the last sync; 0 for a joiner that brings nothing
  int64_t batch = 0;   // sequences of an inner step
  int64_t tokens = 0;  // trained since the last sync
  // Steps that are not among them, though the mean counts on them: the site has stopped earlier,
  // has begun anew since, has joined, or is too slow for its part of the base work.
  int64_t missing_steps = 0;
  std::optional<double> rates = {};  // sum of their learning rates; nullopt: unknown

  template <typename Visitor>
  void fields(Visitor&& visit) {
    visit("steps", steps, "inner steps since the fragment was last applied", required(at_least(0)));
    visit("batch", batch, "sequences of an inner step", required(at_least(0)));
    visit("tokens", tokens, "tokens of these steps", required(at_least(0)));
    visit("missing_steps", missing_steps,
          "steps that are not among them, though the mean counts on them", at_least(0));
    visit("rates", rates, "sum of the learning rates of these steps; null: unknown", at_least(0));
  }
  bool operator==(const Work&) const = default;

  // Counts one more step.
  void add_step(int64_t step_tokens, double learning_rate) {
    // A sum that lacks a step, as that of an older checkpoint, stays unknown.
    if (steps == 0) rates = 0;
    if (rates) *rates += learning_rate;
    ++steps;
    tokens += step_tokens;
  }
  // Returns what is left when its steps are dropped: they are missing.
  Work without_steps() const { return {.missing_steps = missing_steps + steps}; }
};

}  // namespace farstep::outer_optimizer
