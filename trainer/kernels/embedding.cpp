// A batch uses few rows of the table, in any order. So forward copies rows, and backward adds rows
// where they belong, without a matrix product.
#include "trainer/kernels/embedding.h"

#include <algorithm>

#include "trainer/base/processor/vector_dispatch.h"

namespace farstep {

namespace {

// The threads divide the columns, not the rows: two rows may have the same token, and two threads
// would then write the same values.
inline void add_rows(const float* x_gradient, const int64_t* tokens, int64_t rows, int64_t width,
                     int64_t begin, int64_t end, float* table_gradient) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = x_gradient + row * width;
    float* const to = table_gradient + tokens[row] * width;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
  }
}

}  // namespace

void embed(const float* table, const int64_t* tokens, int64_t rows, int64_t width, float* x) {
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(table + tokens[row] * width, width, x + row * width);
  }
}

void embed_backward(const float* x_gradient, const int64_t* tokens, int64_t rows, int64_t width,
                    int64_t begin, int64_t end, float* table_gradient) {
  run_vector_code<add_rows>(x_gradient, tokens, rows, width, begin, end, table_gradient);
}

}  // namespace farstep
