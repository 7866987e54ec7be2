// Causal attention of one head and its gradients by bf16 instructions: tiles of AMX, or products of
// pairs (AVX-512).
//
// Inputs and outputs are bf16. Scores, exponentials, sums and incomplete gradients are fp32.
// Forward computes the scores of 32 queries at a time. Backward recomputes them for 32 queries and
// 32 keys, as FlashAttention-2 does (Dao 2023). Its sum of a query's probabilities times their
// gradients is computed as the product of its output and the output's gradient. One thread at a
// time uses a scratch.
#pragma once

#include <cstdint>

#include "trainer/base/memory/arena_cutter.h"
#include "trainer/base/processor/instruction_set.h"
#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

// A head of size D with T positions. Rows of queries, keys and values are `stride` values apart.
// Rows of the output `mixed` (T, D) and of its gradient are `mixed_stride` apart.
struct HeadShape {
  int64_t length = 0, size = 0;
  int64_t stride = 0, mixed_stride = 0;
  float scale = 1;  // multiplies the scores
};

// One thread's working memory, from cut_head_scratch().
struct HeadScratch {
  // Packed as the first factor of a product (rows) or as the second (columns).
  BF16 *keys = nullptr, *key_rows = nullptr, *key_columns = nullptr;
  BF16 *values = nullptr, *value_rows = nullptr;
  BF16 *queries = nullptr, *query_columns = nullptr;
  BF16 *d_mixed = nullptr, *d_mixed_columns = nullptr;

  float* scores = nullptr;                             // (32, T)
  BF16* probabilities = nullptr;                       // (32, T)
  float* product = nullptr;                            // (2, 32, 32)
  BF16* squares = nullptr;                             // (3, 32, 32)
  float* d_query = nullptr;                            // (T, D)
  float *d_key = nullptr, *d_value = nullptr;          // (32, D)
  float *log_sums = nullptr, *row_products = nullptr;  // (T)
};
HeadScratch cut_head_scratch(ArenaCutter& cutter, const HeadShape& head);

// Whether the functions below can use this set: it is kAmx or kAvx512Bf16, and the process has it.
bool attends_heads_by(InstructionSet set);

// Writes `mixed`, and to log_sums (T) the logarithms of the sums of exponentials.
void attend_head(InstructionSet by, const HeadShape& head, const BF16* query, const BF16* key,
                 const BF16* value, const HeadScratch& scratch, BF16* mixed, float* log_sums);

// The backward pass of one query head: the inputs and outputs of forward, the gradient in `mixed`,
// and the fp32 gradients to write, with rows `stride` apart. With `adds` the gradients of key and
// value are added to those of other heads.
template <typename T>
struct HeadBackward {
  const T *query = nullptr, *key = nullptr, *value = nullptr;
  const T *mixed = nullptr, *d_mixed = nullptr;
  const float* log_sums = nullptr;
  float *d_query = nullptr, *d_key = nullptr, *d_value = nullptr;
  bool adds = false;
};
void attend_head_backward(InstructionSet by, const HeadShape& head,
                          const HeadBackward<BF16>& backward, const HeadScratch& scratch);

}  // namespace farstep
