// SwiGLU on a GPU: the contracts of trainer/kernels/swiglu.h over arrays in its memory, from
// products that are bf16 already.
//
// Every function gives the stream its work and returns what CUDA says of that.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/bf16.h"

namespace farstep {

// out (rows, width) from gate_up (rows, 2 width).
[[nodiscard]] cudaError_t launch_swiglu(const BF16* gate_up, int64_t rows, int64_t width, BF16* out,
                                        cudaStream_t stream);

// gate_up_gradient (rows, 2 width) from out_gradient (rows, width) and gate_up (rows, 2 width), and
// `out` once more; `out` may be where out_gradient is.
[[nodiscard]] cudaError_t launch_swiglu_backward(const BF16* out_gradient, const BF16* gate_up,
                                                 int64_t rows, int64_t width,
                                                 BF16* gate_up_gradient, BF16* out,
                                                 cudaStream_t stream);

}  // namespace farstep
