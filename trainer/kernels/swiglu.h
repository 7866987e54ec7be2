// SwiGLU: out = silu(gate) * up, element by element.
//
// A row of `gate_up` holds the width values of gate, then those of up. Pure functions over ranges
// of rows; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/bf16.h"

namespace farstep {

// out (rows, width) from gate_up (rows, 2 width), which is kept, rounded, in `kept`; backward
// starts from what is kept, and so does out. In fp32 gate_up itself is what is kept.
void swiglu(const float* gate_up, int64_t rows, int64_t width, BF16* kept, BF16* out);
void swiglu(const float* gate_up, int64_t rows, int64_t width, float* out);

// gate_up_gradient (rows, 2 width) from out_gradient (rows, width), and `out` once more, so that
// nobody needs to keep it.
void swiglu_backward(const float* out_gradient, const BF16* kept, int64_t rows, int64_t width,
                     BF16* gate_up_gradient, BF16* out);
void swiglu_backward(const float* out_gradient, const float* kept, int64_t rows, int64_t width,
                     float* gate_up_gradient, float* out);

}  // namespace farstep
