// Cross-entropy and its gradient, row by row.
//
// Pure functions over ranges of rows; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/bf16.h"

namespace farstep {

// losses (rows): the cross-entropy of logits (rows, vocabulary) and targets (rows), which lie in
// [0, vocabulary). Not finite where logits are not. The logits are overwritten.
void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float* losses);

// The same, and `scale` times its gradient in the logits, (rows, vocabulary), which may be where
// the logits are.
void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float scale, float* losses, BF16* logit_gradient);
void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float scale, float* losses, float* logit_gradient);

}  // namespace farstep
