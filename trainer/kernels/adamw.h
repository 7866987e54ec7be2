// AdamW (Loshchilov and Hutter 2019) over any range of the flat vector, and the squared gradient
// norm for clipping.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// The settings of one update, for all values with the same weight decay.
struct AdamWStep {
  float learning_rate = 0;
  float beta1 = 0, beta2 = 0;
  float epsilon = 0;  // outside the root
  float weight_decay = 0;
  float gradient_factor = 1;               // multiplies the gradients, for clipping
  float correction1 = 1, correction2 = 1;  // 1 - beta^t
};

// A range of the flat vector with the same weight decay.
struct DecayStretch {
  int64_t begin = 0, end = 0;
  bool decays = false;
};

// Updates `size` values and their moments. Writes the new values, rounded, to `copy` unless it is
// null.
void adamw(const AdamWStep& step, const float* gradients, int64_t size, float* values,
           float* first_moments, float* second_moments, BF16* copy);

// Returns the sum in fp64; not finite if a value is not.
double sum_of_squares(const float* values, int64_t size);

}  // namespace farstep
