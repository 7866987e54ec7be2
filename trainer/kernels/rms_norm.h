// RMSNorm (Zhang and Sennrich 2019): y = x / rms(x) * weight, row by row, computed in fp32.
//
// Pure functions over ranges of rows; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// Writes y (rows, width) from x (rows, width) and weight (width). Writes 1 / rms of every row to
// inverse_rms (rows), for backward. Writes x again to `copy`, to which the block's output is added
// later. Both may be null.
void rms_norm(const float* x, const float* weight, int64_t rows, int64_t width, float epsilon,
              BF16* y, float* inverse_rms, float* copy);
void rms_norm(const float* x, const float* weight, int64_t rows, int64_t width, float epsilon,
              float* y, float* inverse_rms, float* copy);

// Adds the gradient in x to x_gradient (rows, width) and that in weight to weight_gradient (width).
// Writes the new x_gradient, rounded, to `copy` unless it is null.
void rms_norm_backward(const float* y_gradient, const float* x, const float* weight,
                       const float* inverse_rms, int64_t rows, int64_t width, float* x_gradient,
                       float* weight_gradient, BF16* copy);
void rms_norm_backward(const float* y_gradient, const float* x, const float* weight,
                       const float* inverse_rms, int64_t rows, int64_t width, float* x_gradient,
                       float* weight_gradient, float* copy);

}  // namespace farstep
