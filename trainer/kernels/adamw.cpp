#include "trainer/kernels/adamw.h"

#include <numeric>

#include "trainer/base/processor/vector_dispatch.h"
#include "trainer/kernels/arithmetic.h"

namespace farstep {

namespace {

// Two loops, because a test of `copy` inside one would keep the compiler from vectorising it. One
// pass does clipping, both moments, the update and the bf16 copy. AdamW is bound by memory, so each
// further pass would cost as much again.
inline void update(const AdamWStep& step, const float* gradients, int64_t size, float* values,
                   float* first_moments, float* second_moments, BF16* copy) {
  const AdamWStep own = step;  // a local copy stays in registers: stores cannot change it
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

inline double add_squares(const float* values, int64_t size) {
  // An addition takes several cycles, so there are as many sums as can be in progress at once. 32
  // doubles are four vectors of AVX-512, and eight of AVX2.
  constexpr int64_t kSums = 32;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= size; i += kSums) {
#pragma omp simd
    for (int64_t lane = 0; lane < kSums; ++lane) {
      // In fp64: a sum of 10^8 squares in the 24 bits of fp32 would lose the small ones.
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < size; ++i) sums[0] += double{values[i]} * values[i];
  return std::accumulate(sums, sums + kSums, 0.0);
}

}  // namespace

void adamw(const AdamWStep& step, const float* gradients, int64_t size, float* values,
           float* first_moments, float* second_moments, BF16* copy) {
  run_vector_code<update>(step, gradients, size, values, first_moments, second_moments, copy);
}

double sum_of_squares(const float* values, int64_t size) {
  return run_vector_code<add_squares>(values, size);
}

}  // namespace farstep
