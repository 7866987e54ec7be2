// Cross-entropy and its gradient, row by row.
//
// Pure functions over ranges of rows; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// Writes to losses (rows) the cross-entropy of logits (rows, vocabulary) and targets (rows), which
// are in [0, vocabulary). A loss is not finite if its logits are not. Overwrites the logits.
void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float* losses);

// Does the same, and writes `scale` times the gradient in the logits, (rows, vocabulary), which may
// be the memory of the logits.
void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float scale, float* losses, BF16* logit_gradient);
void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float scale, float* losses, float* logit_gradient);

}  // namespace farstep
