// The softmax of causal attention on a tile of scores: some queries of one head against the keys of
// their sequence.
//
// Row i of the tile is the query at position first + i, which sees keys 0 to first + i. The tile
// has `columns` keys, at least first + rows, and its rows are `columns` apart. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

struct ScoreTile {
  int64_t first = 0, rows = 0, columns = 0;
  float scale = 1;  // multiplies the scores
};

// Writes probabilities (rows, columns) from scores (rows, columns), with 0 for unseen keys. Writes
// the logarithm of each row's sum of exponentials to log_sums (rows). Overwrites `scores`.
void causal_softmax(const ScoreTile& tile, float* scores, BF16* probabilities, float* log_sums);
void causal_softmax(const ScoreTile& tile, float* scores, float* probabilities, float* log_sums);

// Recomputes the probabilities, and computes the gradient in the scores from that in the
// probabilities; all (rows, columns). Overwrites `scores`.
void causal_softmax_backward(const ScoreTile& tile, float* scores, const float* log_sums,
                             const float* probability_gradient, BF16* probabilities,
                             BF16* score_gradient);
void causal_softmax_backward(const ScoreTile& tile, float* scores, const float* log_sums,
                             const float* probability_gradient, float* probabilities,
                             float* score_gradient);

}  // namespace farstep
