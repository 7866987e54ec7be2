// The base batch of the next round, by the gradient noise scale.
//
// A batch far below the noise scale wastes steps, and one far above it wastes examples (McCandlish
// et al. 2018). The noise scale grows during a run, so the batch starts small and follows it. An
// outer step averages the sites' inner steps, so the batches of all sites together are held against
// the scale, as plan.critical_batch does it. The policies divide the work as they do for any base
// batch, and micro-batches stay within the devices' memory.
//
// Pure functions; thread-safe. Every site computes the same from the same figures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "heterogeneity/policy/plan_config.h"

namespace farstep::heterogeneity {

// Returns the base batch of the next round, at least `base_batch`, that of the present one. With it
// the sites' batches add up to `batch_of_all` sequences. It stays while the noise scale is not
// known. Without plan.batch_growth it stays always.
int64_t grown_batch(const PlanConfig& config, int64_t base_batch, int64_t batch_of_all,
                    std::optional<double> noise_scale);

// Returns by what the inner learning rates are multiplied at this base batch.
double learning_rate_factor(const PlanConfig& config, int64_t base_batch);

// Throws ConfigError in `file` unless the batch of these sites can grow: each step must show its
// noise, and nothing else may determine the batch.
void check_batch_growth(const PlanConfig& config, std::span<const RunSite> sites,
                        const std::string& file);

}  // namespace farstep::heterogeneity
