// SwiGLU (Shazeer 2020): out = silu(gate) * up, element by element.
//
// A row of `gate_up` has `width` values of gate and then those of up. Pure functions over ranges of
// rows; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// Writes out (rows, width) from gate_up (rows, 2 width). Writes gate_up rounded to `kept`, from
// which `out` and backward are computed. In fp32 gate_up itself takes the place of `kept`.
void swiglu(const float* gate_up, int64_t rows, int64_t width, BF16* kept, BF16* out);
void swiglu(const float* gate_up, int64_t rows, int64_t width, float* out);

// Writes gate_up_gradient (rows, 2 width) from out_gradient (rows, width). Recomputes `out`, so
// that it need not be stored between forward and backward.
void swiglu_backward(const float* out_gradient, const BF16* kept, int64_t rows, int64_t width,
                     BF16* gate_up_gradient, BF16* out);
void swiglu_backward(const float* out_gradient, const float* kept, int64_t rows, int64_t width,
                     float* gate_up_gradient, float* out);

}  // namespace farstep
