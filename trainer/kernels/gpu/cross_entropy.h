// Cross-entropy on a GPU: trainer/kernels/cross_entropy.h over arrays in its memory.
//
// A launch returns CUDA's error code. Sums have a fixed order, so equal calls give equal bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// Writes to losses (rows) the cross-entropy of logits (rows, vocabulary) and targets (rows);
// vocabulary is below 2^31. Writes to logit_gradient (rows, vocabulary), unless it is null, `scale`
// times the gradient in the logits.
[[nodiscard]] cudaError_t launch_cross_entropy(const float* logits, const int64_t* targets,
                                               int64_t rows, int64_t vocabulary, float scale,
                                               float* losses, BF16* logit_gradient,
                                               cudaStream_t stream);

}  // namespace farstep
