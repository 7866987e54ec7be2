// A tile is a block of queries against all keys that any of them sees. Forward keeps one number for
// each query, the log of its sum; backward computes the probabilities from the scores again. So no
// matrix of probabilities is kept.
#include "trainer/kernels/softmax.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/processor/vector_dispatch.h"
#include "trainer/kernels/numbers/largest.h"
#include "trainer/kernels/numbers/vector_code.h"

namespace farstep {

namespace {

// Subtracting the largest score avoids overflow; unseen keys get probability 0.
template <typename T>
inline void softmax_rows(const ScoreTile& tile, float* scores, T* probabilities, float* log_sums) {
  for (int64_t row = 0; row < tile.rows; ++row) {
    const int64_t seen = tile.first + row + 1;
    float* const exponentials = scores + row * tile.columns;
    T* const to = probabilities + row * tile.columns;
    const float largest = largest_of(exponentials, seen);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < seen; ++i) {
      exponentials[i] = vector_exp_of_negative((exponentials[i] - largest) * tile.scale);
      sum += exponentials[i];
    }
    // The log-sum is all that backward needs to compute the probabilities again.
    const float log_sum = largest * tile.scale + std::log(sum);
    log_sums[row] = log_sum;
    const float inverse = 1.0F / sum;
#pragma omp simd
    for (int64_t i = 0; i < seen; ++i) to[i] = rounded<T>(exponentials[i] * inverse);
    // The product with the values takes whole rows of the tile, also keys that the query does not
    // see.
    std::fill(to + seen, to + tile.columns, T{});
  }
}

template <typename T>
inline void differentiate(const ScoreTile& tile, float* scores, const float* log_sums,
                          const float* probability_gradient, T* probabilities, T* score_gradient) {
  for (int64_t row = 0; row < tile.rows; ++row) {
    const int64_t seen = tile.first + row + 1;
    float* const exact = scores + row * tile.columns;
    const float* const d_p = probability_gradient + row * tile.columns;
    T* const p = probabilities + row * tile.columns;
    T* const d_score = score_gradient + row * tile.columns;
    const float log_sum = log_sums[row];
    // The gradient of a softmax: dscore = p (dp - sum of p dp).
    float mean = 0;
#pragma omp simd reduction(+ : mean)
    for (int64_t i = 0; i < seen; ++i) {
      // The gradient takes the exact probabilities. The rounded ones are those that forward
      // multiplied.
      exact[i] = vector_exp_of_negative(exact[i] * tile.scale - log_sum);
      p[i] = rounded<T>(exact[i]);
      mean += exact[i] * d_p[i];
    }
#pragma omp simd
    for (int64_t i = 0; i < seen; ++i) {
      d_score[i] = rounded<T>(exact[i] * (d_p[i] - mean) * tile.scale);
    }
    std::fill(p + seen, p + tile.columns, T{});
    std::fill(d_score + seen, d_score + tile.columns, T{});
  }
}

}  // namespace

void causal_softmax(const ScoreTile& tile, float* scores, BF16* probabilities, float* log_sums) {
  run_vector_code<softmax_rows<BF16>>(tile, scores, probabilities, log_sums);
}

void causal_softmax(const ScoreTile& tile, float* scores, float* probabilities, float* log_sums) {
  run_vector_code<softmax_rows<float>>(tile, scores, probabilities, log_sums);
}

void causal_softmax_backward(const ScoreTile& tile, float* scores, const float* log_sums,
                             const float* probability_gradient, BF16* probabilities,
                             BF16* score_gradient) {
  run_vector_code<differentiate<BF16>>(tile, scores, log_sums, probability_gradient, probabilities,
                                       score_gradient);
}

void causal_softmax_backward(const ScoreTile& tile, float* scores, const float* log_sums,
                             const float* probability_gradient, float* probabilities,
                             float* score_gradient) {
  run_vector_code<differentiate<float>>(tile, scores, log_sums, probability_gradient, probabilities,
                                        score_gradient);
}

}  // namespace farstep
