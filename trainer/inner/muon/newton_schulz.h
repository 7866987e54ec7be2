// The Newton-Schulz iteration, which makes a matrix nearly orthogonal by matrix products alone.
//
// Source: Jordan et al. 2024, "Muon".
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace farstep {

// Returns the matrix (rows, columns), fp32 or bf16, with its singular values brought near 1, in
// bf16 and on the same device. A CPU computes the products in the way that the process chose
// (product_choice.h); a GPU computes them by LibTorch.
at::Tensor orthogonalised(const at::Tensor& matrix, int64_t iterations);

}  // namespace farstep
