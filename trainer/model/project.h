// The matrix product of every layer: master weights in fp32, products in the type of the
// activations.
#pragma once

#include <ATen/ATen.h>

namespace farstep {

// x (..., in) times the transposed `weight` (out, in), which is cast to x's type: (..., out).
inline at::Tensor project(const at::Tensor& x, const at::Tensor& weight) {
  return at::linear(x, weight.to(x.scalar_type()));
}

}  // namespace farstep
