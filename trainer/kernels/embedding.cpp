#include "trainer/kernels/embedding.h"

#include <algorithm>

#include "trainer/kernels/vector_code.h"

namespace farstep {

void embed(const float* table, const int64_t* tokens, int64_t rows, int64_t width, float* x) {
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(table + tokens[row] * width, width, x + row * width);
  }
}

FARSTEP_VECTOR_CODE
void embed_backward(const float* x_gradient, const int64_t* tokens, int64_t rows, int64_t width,
                    int64_t begin, int64_t end, float* table_gradient) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = x_gradient + row * width;
    float* const to = table_gradient + tokens[row] * width;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
  }
}

}  // namespace farstep
