// RMSNorm on a GPU: trainer/kernels/rms_norm.h over arrays in its memory. The same pass does the
// addition before a norm and computes the largest magnitude for FP8.
//
// A launch returns CUDA's error code. Sums have a fixed order, so equal calls give equal bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// The arrays of forward: (rows, width), but weight (width) and inverse_rms (rows). The norm is that
// of x, or with a branch that of x + branch, which is written to `sum`.
struct RmsNorm {
  const float* x = nullptr;
  const BF16* branch = nullptr;
  float* sum = nullptr;
  const float* weight = nullptr;
  int64_t rows = 0, width = 0;
  float epsilon = 0;
  BF16* y = nullptr;             // the result
  float* inverse_rms = nullptr;  // 1 / rms of every row
  uint32_t* largest = nullptr;   // raised to the magnitude_bits of y's largest, unless null
};
[[nodiscard]] cudaError_t launch_rms_norm(const RmsNorm& norm, cudaStream_t stream);

// The arrays of backward: (rows, width), but weight (width) and inverse_rms (rows).
struct RmsNormBackward {
  const BF16* y_gradient = nullptr;
  const float *x = nullptr, *weight = nullptr, *inverse_rms = nullptr;
  int64_t rows = 0, width = 0;
  float* x_gradient = nullptr;  // the gradient in x is added to it
  BF16* copy = nullptr;         // the new x_gradient, rounded
  uint32_t* largest = nullptr;  // raised to the magnitude_bits of copy's largest, unless null
};

// Returns the number of rows of `parts` below.
int64_t rms_norm_parts(int64_t rows);

// Also writes the gradient in weight to weight_gradient (width), or adds it if `add`. parts
// (rms_norm_parts(rows), width) is working memory.
[[nodiscard]] cudaError_t launch_rms_norm_backward(const RmsNormBackward& norm,
                                                   float* weight_gradient, bool add, float* parts,
                                                   cudaStream_t stream);

}  // namespace farstep
