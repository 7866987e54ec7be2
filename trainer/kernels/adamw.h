// AdamW over any piece of the flat vector, and what clipping needs to know of the gradients.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/bf16.h"

namespace farstep {

// One update, the same for all values that share a weight decay.
struct AdamWStep {
  float learning_rate = 0;
  float beta1 = 0, beta2 = 0;
  float epsilon = 0;  // outside the root
  float weight_decay = 0;
  float gradient_factor = 1;               // of the gradients, for clipping
  float correction1 = 1, correction2 = 1;  // 1 - beta^t
};

// Neighbours in the flat vector that decay alike.
struct DecayStretch {
  int64_t begin = 0, end = 0;
  bool decays = false;
};

// Updates `size` values and their moments; leaves the new values, rounded, in `copy` unless that is
// null.
void adamw(const AdamWStep& step, const float* gradients, int64_t size, float* values,
           float* first_moments, float* second_moments, BF16* copy);

// In fp64; not finite if a value is not.
double sum_of_squares(const float* values, int64_t size);

}  // namespace farstep
