// fp32 to the type of the activations.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/bf16.h"

namespace farstep {

// `rows` rows of `width` values rounded to the type of `to`; a row begins `from_stride` and
// `to_stride` values after the one before.
void round_rows(const float* from, int64_t from_stride, int64_t rows, int64_t width, BF16* to,
                int64_t to_stride);
void round_rows(const float* from, int64_t from_stride, int64_t rows, int64_t width, float* to,
                int64_t to_stride);

}  // namespace farstep
