// Cross-entropy on a GPU: the contracts of trainer/kernels/cross_entropy.h over arrays in its
// memory.
//
// Every function gives the stream its work and returns what CUDA says of that. Sums have a fixed
// order, so equal calls give equal bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/bf16.h"

namespace farstep {

// losses (rows): the cross-entropy of logits (rows, vocabulary) and targets (rows), and in
// logit_gradient (rows, vocabulary), unless that is null, `scale` times its gradient in the logits.
[[nodiscard]] cudaError_t launch_cross_entropy(const float* logits, const int64_t* targets,
                                               int64_t rows, int64_t vocabulary, float scale,
                                               float* losses, BF16* logit_gradient,
                                               cudaStream_t stream);

}  // namespace farstep
