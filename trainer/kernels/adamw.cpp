#include "trainer/kernels/adamw.h"

#include <numeric>

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
  // As many sums as additions can be under way.
  constexpr int64_t kSums = 32;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= size; i += kSums) {
#pragma omp simd
    for (int64_t lane = 0; lane < kSums; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < size; ++i) sums[0] += double{values[i]} * values[i];
  return std::accumulate(sums, sums + kSums, 0.0);
}

}  // namespace farstep
