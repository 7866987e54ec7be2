// Rotary positions on a GPU: the contracts of trainer/kernels/rotary.h over arrays in its memory.
//
// Every function gives the stream its work and returns what CUDA says of that.
#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/rotary.h"

namespace farstep {

// Rotates queries and keys in place in heads (rows, width); values stay as they are.
[[nodiscard]] cudaError_t launch_rotate(const RotaryRows& shape, int64_t rows, BF16* heads,
                                        cudaStream_t stream);

// The gradients of rotated queries, of rotated keys and of values as attention leaves them, each
// (rows, its heads, head size).
struct HeadGradients {
  const BF16 *queries, *keys, *values;
};

// heads_gradient (rows, width): all of them side by side, as before the rotation. There are as many
// keys as values.
[[nodiscard]] cudaError_t launch_rotate_back(const RotaryRows& shape, const HeadGradients& rotated,
                                             int64_t rows, BF16* heads_gradient,
                                             cudaStream_t stream);

}  // namespace farstep
