#include "trainer/inner/optimizer/host_optimizer.h"

#include <cmath>
#include <utility>

#include "trainer/inner/optimizer/gradient_norm.h"

namespace farstep {

void HostOptimizer::update(double learning_rate, double gradient_factor) {
  // A checkpoint may still copy the values that the update changes.
  held_seconds_ += snapshot_.hold();
  change_values(learning_rate, gradient_factor);
}

double HostOptimizer::clip_and_update(double learning_rate,
                                      const std::optional<double>& clip_norm) {
  const double norm = gradient_norm(parameters_.gradients());
  if (std::isfinite(norm)) update(learning_rate, clip_factor(norm, clip_norm));
  return norm;
}

NamedBuffers HostOptimizer::start_snapshot(bool with_values) {
  auto live = pull_state();
  if (with_values) live.push_back(f32_buffer("theta_local", parameters_.host_values().pull()));
  return snapshot_.start(std::move(live));
}

}  // namespace farstep
