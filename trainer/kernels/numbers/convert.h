// Converts fp32 to the type of the activations.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// Rounds `rows` rows of `width` values to the type of `to`. The strides are the distances between
// the beginnings of rows, in values.
void round_rows(const float* from, int64_t from_stride, int64_t rows, int64_t width, BF16* to,
                int64_t to_stride);
void round_rows(const float* from, int64_t from_stride, int64_t rows, int64_t width, float* to,
                int64_t to_stride);

}  // namespace farstep
