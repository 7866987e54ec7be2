// The matrix product of every linear layer: fp32 master weights, products in the type of the
// activations.
#pragma once

#include <ATen/ATen.h>

namespace farstep {

// Returns x (..., in) times the transpose of `weight` (out, in), cast to the type of x: (..., out).
inline at::Tensor project(const at::Tensor& x, const at::Tensor& weight) {
  return at::linear(x, weight.to(x.scalar_type()));
}

}  // namespace farstep
