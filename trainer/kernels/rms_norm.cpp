#include "trainer/kernels/rms_norm.h"

#include <algorithm>

#include "trainer/base/processor/vector_dispatch.h"
#include "trainer/kernels/arithmetic.h"

namespace farstep {

namespace {

template <typename T>
inline void normalise(const float* x, const float* weight, int64_t rows, int64_t width,
                      float epsilon, T* y, float* inverse_rms, float* copy) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = x + row * width;
    // In fp32: a row has a few thousand values, and the vector's lanes add apart.
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < width; ++i) squares += from[i] * from[i];
    const float inverse = inverse_rms_of(squares, width, epsilon);
    if (inverse_rms != nullptr) inverse_rms[row] = inverse;
    T* const to = y + row * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) to[i] = rounded<T>(from[i] * inverse * weight[i]);
    // In a loop of its own: writing two rows alternately takes longer.
    if (copy != nullptr) std::copy_n(from, width, copy + row * width);
  }
}

// dx = w dy / rms - x (sum of w dy x) / (rms^3 width). The sum needs a pass of its own before the
// result.
template <typename T>
inline void differentiate(const float* y_gradient, const float* x, const float* weight,
                          const float* inverse_rms, int64_t rows, int64_t width, float* x_gradient,
                          float* weight_gradient, T* copy) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const dy = y_gradient + row * width;
    const float* const from = x + row * width;
    float* const dx = x_gradient + row * width;
    float product = 0;
#pragma omp simd reduction(+ : product)
    for (int64_t i = 0; i < width; ++i) product += dy[i] * weight[i] * from[i];
    const float inverse = inverse_rms[row];
    const float along = rms_norm_loss(product, inverse, width);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      // Each thread adds to a weight gradient of its own, as all rows add to it.
      weight_gradient[i] += dy[i] * from[i] * inverse;
      dx[i] += dy[i] * weight[i] * inverse - from[i] * along;
    }
    if (copy == nullptr) continue;
    T* const rounded_dx = copy + row * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) rounded_dx[i] = rounded<T>(dx[i]);
  }
}

}  // namespace

void rms_norm(const float* x, const float* weight, int64_t rows, int64_t width, float epsilon,
              BF16* y, float* inverse_rms, float* copy) {
  run_vector_code<normalise<BF16>>(x, weight, rows, width, epsilon, y, inverse_rms, copy);
}

void rms_norm(const float* x, const float* weight, int64_t rows, int64_t width, float epsilon,
              float* y, float* inverse_rms, float* copy) {
  run_vector_code<normalise<float>>(x, weight, rows, width, epsilon, y, inverse_rms, copy);
}

void rms_norm_backward(const float* y_gradient, const float* x, const float* weight,
                       const float* inverse_rms, int64_t rows, int64_t width, float* x_gradient,
                       float* weight_gradient, BF16* copy) {
  run_vector_code<differentiate<BF16>>(y_gradient, x, weight, inverse_rms, rows, width, x_gradient,
                                       weight_gradient, copy);
}

void rms_norm_backward(const float* y_gradient, const float* x, const float* weight,
                       const float* inverse_rms, int64_t rows, int64_t width, float* x_gradient,
                       float* weight_gradient, float* copy) {
  run_vector_code<differentiate<float>>(y_gradient, x, weight, inverse_rms, rows, width, x_gradient,
                                        weight_gradient, copy);
}

}  // namespace farstep
