// The Newton-Schulz iteration, which makes a matrix nearly orthogonal by matrix products alone.
//
// Source: Jordan et al. 2024, "Muon".
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace farstep {

// Returns the matrices (count, rows, columns), fp32 or bf16, with their singular values brought
// near 1, in bf16 and on the same device. A CPU computes the products in the way that the process
// chose (product_choice.h); a GPU computes those of all matrices at once, by LibTorch.
at::Tensor orthogonalised(const at::Tensor& matrices, int64_t iterations);

}  // namespace farstep
