// The optimizer that a run's config names: how it is made, and what others must know of it.
#pragma once

#include <memory>
#include <span>

#include "trainer/inner/inner_config.h"
#include "trainer/inner/optimizer/optimizer.h"
#include "trainer/model/parameters/parameters.h"
#include "trainer/rate/step_bound.h"

namespace farstep {

// Makes an optimizer for all groups of `parameters`, which must outlive it.
std::unique_ptr<Optimizer> make_optimizer(const InnerConfig& config, Parameters& parameters);

// Returns how far a step of that optimizer can move a value of a model with this layout.
StepBound step_bound(const InnerConfig& config, std::span<const ParameterSpec> layout);

}  // namespace farstep
