// SwiGLU on a GPU: trainer/kernels/swiglu.h over arrays in its memory; gate_up is bf16 already.
//
// A launch returns CUDA's error code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// Writes out (rows, width) from gate_up (rows, 2 width). Raises `largest`, unless it is null, to
// the magnitude_bits of the largest of out.
[[nodiscard]] cudaError_t launch_swiglu(const BF16* gate_up, int64_t rows, int64_t width, BF16* out,
                                        uint32_t* largest, cudaStream_t stream);

// The arrays of backward. It writes gate_up_gradient (rows, 2 width) from out_gradient (rows,
// width) and gate_up (rows, 2 width).
struct SwigluBackward {
  const BF16 *out_gradient = nullptr, *gate_up = nullptr;
  int64_t rows = 0, width = 0;
  BF16* gate_up_gradient = nullptr;
  uint32_t* largest = nullptr;  // raised to the magnitude_bits of gate_up_gradient's, unless null
};
[[nodiscard]] cudaError_t launch_swiglu_backward(const SwigluBackward& swiglu, cudaStream_t stream);

}  // namespace farstep
