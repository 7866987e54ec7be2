// RMSNorm on a GPU: the contracts of trainer/kernels/rms_norm.h over arrays in its memory.
//
// Every function gives the stream its work and returns what CUDA says of that. Sums have a fixed
// order, so equal calls give equal bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/bf16.h"

namespace farstep {

// y (rows, width) from x (rows, width) and weight (width); leaves 1 / rms of every row in
// inverse_rms (rows), and x again in `copy` unless that is null.
[[nodiscard]] cudaError_t launch_rms_norm(const float* x, const float* weight, int64_t rows,
                                          int64_t width, float epsilon, BF16* y, float* inverse_rms,
                                          float* copy, cudaStream_t stream);

// What backward works on; all (rows, width) but weight (width) and inverse_rms (rows).
struct RmsNormBackward {
  const float *y_gradient, *x, *weight, *inverse_rms;
  int64_t rows, width;
};

// Rows of `parts` below.
int64_t rms_norm_parts(int64_t rows);

// Adds the gradient in x to x_gradient (rows, width), leaves that, rounded, in `copy`, and the
// gradient in weight in weight_gradient (width), to what is there if `add`. parts
// (rms_norm_parts(rows), width) is room to work in.
[[nodiscard]] cudaError_t launch_rms_norm_backward(const RmsNormBackward& norm, float* x_gradient,
                                                   BF16* copy, float* weight_gradient, bool add,
                                                   float* parts, cudaStream_t stream);

}  // namespace farstep
