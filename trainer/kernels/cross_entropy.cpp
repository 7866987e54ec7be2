// A vocabulary of 32,000 makes the logits the largest array of a step. So a row is passed over
// three times and no more: its largest value, the exponentials with their sum, and the gradient
// over them.
#include "trainer/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/processor/vector_dispatch.h"
#include "trainer/kernels/numbers/largest.h"
#include "trainer/kernels/numbers/vector_code.h"

namespace farstep {

namespace {

// Values in one inner loop. The first pass over a row, for its largest logit, would wait for
// memory; the other two leave memory idle. So each of these two fetches one half of the next row, a
// part in each loop.
constexpr int64_t kBlock = 512;

// Replaces the logits by their exponentials, at most 1 each, and returns their sum. Subtracting the
// largest logit first avoids overflow.
inline float loss_of_row(float* logits, int64_t target, int64_t vocabulary, float& loss) {
  const float largest = largest_of(logits, vocabulary);
  const float wanted = logits[target] - largest;
  float sum = 0;
  for (int64_t begin = 0; begin < vocabulary; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, vocabulary);
    prefetch(logits + vocabulary + begin / 2, kBlock / 2);
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) {
      logits[i] = vector_exp_of_negative(logits[i] - largest);
      sum += logits[i];
    }
  }
  // From the sum instead of a probability, which can underflow to 0.
  loss = std::log(sum) - wanted;
  return sum;
}

// The gradient of a row is (softmax - one-hot of the target) times `scale`.
template <typename T>
inline void differentiate(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                          float scale, float* losses, T* logit_gradient) {
  for (int64_t row = 0; row < rows; ++row) {
    float* const exponentials = logits + row * vocabulary;
    T* const gradient = logit_gradient + row * vocabulary;
    const float sum = loss_of_row(exponentials, targets[row], vocabulary, losses[row]);
    // Read before the loop: the gradient may overwrite it.
    const float of_target = exponentials[targets[row]];
    const float factor = scale / sum;
    for (int64_t begin = 0; begin < vocabulary; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, vocabulary);
      prefetch(exponentials + vocabulary + (vocabulary + begin) / 2, kBlock / 2);
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) gradient[i] = rounded<T>(exponentials[i] * factor);
    }
    // One rounding at the end: a share near 1 that was rounded before would leave no digits of the
    // difference.
    gradient[targets[row]] = rounded<T>(of_target * factor - scale);
  }
}

inline void losses_of_rows(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                           float* losses) {
  for (int64_t row = 0; row < rows; ++row) {
    loss_of_row(logits + row * vocabulary, targets[row], vocabulary, losses[row]);
  }
}

}  // namespace

void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float* losses) {
  run_vector_code<losses_of_rows>(logits, targets, rows, vocabulary, losses);
}

void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float scale, float* losses, BF16* logit_gradient) {
  run_vector_code<differentiate<BF16>>(logits, targets, rows, vocabulary, scale, losses,
                                       logit_gradient);
}

void cross_entropy(float* logits, const int64_t* targets, int64_t rows, int64_t vocabulary,
                   float scale, float* losses, float* logit_gradient) {
  run_vector_code<differentiate<float>>(logits, targets, rows, vocabulary, scale, losses,
                                        logit_gradient);
}

}  // namespace farstep
