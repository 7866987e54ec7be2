// Makes the optimizer that a run's config names.
#pragma once

#include <memory>

#include "trainer/inner/inner_config.h"
#include "trainer/inner/optimizer/optimizer.h"
#include "trainer/model/parameters/parameters.h"

namespace farstep {

// Makes an optimizer for all groups of `parameters`, which must outlive it.
std::unique_ptr<Optimizer> make_optimizer(const InnerConfig& config, Parameters& parameters);

}  // namespace farstep
