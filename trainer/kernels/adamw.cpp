#include "trainer/kernels/adamw.h"

#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/vector_code.h"

namespace farstep {

FARSTEP_VECTOR_CODE
void adamw(const AdamWStep& step, const float* gradients, int64_t size, float* values,
           float* first_moments, float* second_moments, BF16* copy) {
  const AdamWStep own = step;  // in registers: no store through a pointer can change it
  const AdamWRates rates(own);
  if (copy == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      adamw_update(own, rates, gradients[i], values[i], first_moments[i], second_moments[i]);
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    copy[i] = rounded<BF16>(
        adamw_update(own, rates, gradients[i], values[i], first_moments[i], second_moments[i]));
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
