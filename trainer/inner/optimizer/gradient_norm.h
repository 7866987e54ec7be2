// The global gradient norm, and clipping by it. Pure functions.
#pragma once

#include <ATen/ATen.h>

#include <optional>

namespace farstep {

// Returns the Euclidean norm of a flat fp32 tensor; not finite if an element is not. On a CPU it is
// summed in fp64 and does not depend on the number of threads.
double gradient_norm(const at::Tensor& gradients);
// Returns the square of that.
double squared_norm(const at::Tensor& gradients);

// Returns the factor for gradients of this norm: min(1, clip_norm / (norm + 1e-6)), or 1 without a
// clip_norm.
double clip_factor(double norm, const std::optional<double>& clip_norm);

}  // namespace farstep
