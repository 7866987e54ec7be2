// RMSNorm (Zhang and Sennrich 2019): y = x / rms(x) * weight, row by row, in fp32 inside.
//
// Pure functions over ranges of rows; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/bf16.h"

namespace farstep {

// y (rows, width) from x (rows, width) and weight (width); leaves 1 / rms of every row in
// inverse_rms (rows), which backward needs, and x again in `copy`, to which a block's output is
// then added; either may be null.
void rms_norm(const float* x, const float* weight, int64_t rows, int64_t width, float epsilon,
              BF16* y, float* inverse_rms, float* copy);
void rms_norm(const float* x, const float* weight, int64_t rows, int64_t width, float epsilon,
              float* y, float* inverse_rms, float* copy);

// Adds the gradient in x to x_gradient (rows, width), and that in weight to weight_gradient
// (width); leaves the new x_gradient, rounded, in `copy` unless that is null.
void rms_norm_backward(const float* y_gradient, const float* x, const float* weight,
                       const float* inverse_rms, int64_t rows, int64_t width, float* x_gradient,
                       float* weight_gradient, BF16* copy);
void rms_norm_backward(const float* y_gradient, const float* x, const float* weight,
                       const float* inverse_rms, int64_t rows, int64_t width, float* x_gradient,
                       float* weight_gradient, float* copy);

}  // namespace farstep
