// Rotary positions on a GPU: trainer/kernels/rotary.h over arrays in its memory.
//
// A launch returns CUDA's error code. Rows and positions are below 2^31.
#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/rotary.h"

namespace farstep {

// Rotates queries and keys in place in heads (rows, width); does not change the values.
[[nodiscard]] cudaError_t launch_rotate(const RotaryRows& shape, int64_t rows, BF16* heads,
                                        cudaStream_t stream);

// The gradients of rotated queries, rotated keys and values, in the layout of attention: each
// (rows, its heads, head size).
struct HeadGradients {
  const BF16 *queries, *keys, *values;
};

// Writes all of them side by side to heads_gradient (rows, width), with the rotation undone. There
// are as many key heads as value heads.
[[nodiscard]] cudaError_t launch_rotate_back(const RotaryRows& shape, const HeadGradients& rotated,
                                             int64_t rows, BF16* heads_gradient,
                                             cudaStream_t stream);

}  // namespace farstep
