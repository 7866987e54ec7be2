#include "trainer/kernels/adamw.h"

#include <cmath>

#include "trainer/kernels/vector_code.h"

namespace farstep {

namespace {

// The update of one value, which it returns.
inline float update(const AdamWStep& step, float rate, float inverse_root, float gradient,
                    float& value, float& first, float& second) {
  const float scaled = gradient * step.gradient_factor;
  first += (1.0F - step.beta1) * (scaled - first);
  second = step.beta2 * second + (1.0F - step.beta2) * scaled * scaled;
  const float denominator = std::sqrt(second) * inverse_root + step.epsilon;
  value -= step.learning_rate * step.weight_decay * value + rate * first / denominator;
  return value;
}

}  // namespace

FARSTEP_VECTOR_CODE
void adamw(const AdamWStep& step, const float* gradients, int64_t size, float* values,
           float* first_moments, float* second_moments, BF16* copy) {
  const AdamWStep own = step;  // in registers: no store through a pointer can change it
  const float rate = own.learning_rate / own.correction1;
  const float inverse_root = 1.0F / std::sqrt(own.correction2);
  if (copy == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      update(own, rate, inverse_root, gradients[i], values[i], first_moments[i], second_moments[i]);
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    copy[i] = rounded<BF16>(update(own, rate, inverse_root, gradients[i], values[i],
                                   first_moments[i], second_moments[i]));
  }
}

FARSTEP_VECTOR_CODE
double sum_of_squares(const float* values, int64_t size) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    const double value = values[i];
    sum += value * value;
  }
  return sum;
}

}  // namespace farstep
