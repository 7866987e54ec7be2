// Causal attention of one head, and its gradients, by Intel's matrix instructions.
//
// bf16 in and out, fp32 between: scores, exponentials, sums, gradients until they are whole. Scores
// are there for 32 queries at once; in backward for 32 queries and 32 keys, made once more (Dao
// 2023), and what a query's probabilities times their gradients add up to is taken as its output
// times the gradient in it. Only where has_amx(); a scratch is for one thread at a time.
#pragma once

#include <cstdint>

#include "trainer/base/arena_cutter.h"
#include "trainer/kernels/bf16.h"

namespace farstep {

// T positions of a head of size D; rows of queries, keys and values are `stride` values apart, and
// those of what is mixed, (T, D) as well, and of the gradient in it `mixed_stride`.
struct AmxHead {
  int64_t length = 0, size = 0;
  int64_t stride = 0, mixed_stride = 0;
  float scale = 1;  // of the scores
};

// What one thread needs; made by cut_amx_attention_scratch.
struct AmxAttentionScratch {
  // Packed as one factor or the other.
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
AmxAttentionScratch cut_amx_attention_scratch(ArenaCutter& cutter, const AmxHead& head);

// mixed and log_sums (T), the logarithms of the sums of exponentials.
void amx_attend(const AmxHead& head, const BF16* query, const BF16* key, const BF16* value,
                const AmxAttentionScratch& scratch, BF16* mixed, float* log_sums);

// One query head on its way back: what forward took and left, the gradient in `mixed`, and where
// the gradients go, fp32, rows `stride` apart; `adds`: those of key and value have the parts of
// other heads already.
template <typename T>
struct HeadBackward {
  const T *query = nullptr, *key = nullptr, *value = nullptr;
  const T *mixed = nullptr, *d_mixed = nullptr;
  const float* log_sums = nullptr;
  float *d_query = nullptr, *d_key = nullptr, *d_value = nullptr;
  bool adds = false;
};
void amx_attend_backward(const AmxHead& head, const HeadBackward<BF16>& backward,
                         const AmxAttentionScratch& scratch);

}  // namespace farstep
