#include "trainer/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "trainer/kernels/largest.h"
#include "trainer/kernels/vector_code.h"

namespace farstep {

namespace {

// Values that are computed at once. Meanwhile the next row comes, half in each of two passes: one
// pass alone would wait for memory and leave the others without.
constexpr int64_t kBlock = 512;

// Leaves the exponentials, less than 1 each, in `logits`; returns their sum.
inline float loss_of_row(float* logits, int64_t target, int64_t vocabulary, float& loss) {
  const float largest = largest_of(logits, vocabulary);
  const float wanted = logits[target] - largest;
  float sum = 0;
  for (int64_t begin = 0; begin < vocabulary; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, vocabulary);
    prefetch(logits + vocabulary + begin / 2, kBlock / 2);
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) {
      logits[i] = vector_exp(logits[i] - largest);
      sum += logits[i];
    }
  }
  loss = std::log(sum) - wanted;
  return sum;
}

template <typename T>
inline void differentiate(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                          float scale, float* losses, T* logit_gradient) {
  for (int64_t row = 0; row < rows; ++row) {
    float* const exponentials = logits + row * vocabulary;
    T* const gradient = logit_gradient + row * vocabulary;
    const float sum = loss_of_row(exponentials, targets[row], vocabulary, losses[row]);
    const float of_target = exponentials[targets[row]];
    const float factor = scale / sum;
    for (int64_t begin = 0; begin < vocabulary; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, vocabulary);
      prefetch(exponentials + vocabulary + (vocabulary + begin) / 2, kBlock / 2);
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) gradient[i] = rounded<T>(exponentials[i] * factor);
    }
    gradient[targets[row]] = rounded<T>(of_target * factor - scale);
  }
}

}  // namespace

FARSTEP_VECTOR_CODE
void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float* losses) {
  for (int64_t row = 0; row < rows; ++row) {
    loss_of_row(logits + row * vocabulary, targets[row], vocabulary, losses[row]);
  }
}

FARSTEP_VECTOR_CODE
void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float scale, float* losses, BF16* logit_gradient) {
  differentiate(logits, targets, rows, vocabulary, scale, losses, logit_gradient);
}

FARSTEP_VECTOR_CODE
void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float scale, float* losses, float* logit_gradient) {
  differentiate(logits, targets, rows, vocabulary, scale, losses, logit_gradient);
}

}  // namespace farstep
