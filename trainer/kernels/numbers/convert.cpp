#include "trainer/kernels/numbers/convert.h"

#include <algorithm>

#include "trainer/base/processor/vector_dispatch.h"

namespace farstep {

namespace {

inline void round_to_bf16(const float* from, int64_t from_stride, int64_t rows, int64_t width,
                          BF16* to, int64_t to_stride) {
  for (int64_t row = 0; row < rows; ++row, from += from_stride, to += to_stride) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) to[i] = rounded<BF16>(from[i]);
  }
}

}  // namespace

void round_rows(const float* from, int64_t from_stride, int64_t rows, int64_t width, BF16* to,
                int64_t to_stride) {
  run_vector_code<round_to_bf16>(from, from_stride, rows, width, to, to_stride);
}

void round_rows(const float* from, int64_t from_stride, int64_t rows, int64_t width, float* to,
                int64_t to_stride) {
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * from_stride, width, to + row * to_stride);
  }
}

}  // namespace farstep
