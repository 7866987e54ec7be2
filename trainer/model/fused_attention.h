// Causal attention and its gradients over rows of queries, keys and values as the projections leave
// them: tile by tile, so that scores are never whole in memory, and without copies for grouped
// queries (Dao 2023 has the recomputation in backward).
//
// T is float or BF16. Spreads over the calling thread's threads; not thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/bf16.h"

namespace farstep {

struct AttentionShape {
  int64_t sequences = 0, length = 0;  // B, T: B T rows
  int64_t heads = 0, kv_heads = 0;    // H, G
  int64_t head_size = 0;              // D

  int64_t rows() const { return sequences * length; }
  int64_t width() const { return (heads + 2 * kv_heads) * head_size; }  // of a row of all heads
  int64_t mixed_width() const { return heads * head_size; }
  int64_t tile_rows() const { return length < 256 ? length : 256; }
};

// What one thread needs to work on a tile, for every thread.
template <typename T>
struct AttentionScratch {
  float *scores = nullptr, *gradient = nullptr;     // (threads, tile_rows, T)
  T *probabilities = nullptr, *d_scores = nullptr;  // (threads, tile_rows, T)
  float* mixed = nullptr;                           // (threads, tile_rows, D)
};

// mixed (rows, H D) from heads (rows, width): queries, keys, values; leaves what backward needs in
// log_sums (B, H, T).
template <typename T>
void attend(const AttentionShape& shape, const T* heads, const AttentionScratch<T>& scratch,
            T* mixed, float* log_sums);

// The gradient in heads, fp32 (rows, width), from that in mixed (rows, H D).
template <typename T>
void attend_backward(const AttentionShape& shape, const T* heads, const float* log_sums,
                     const T* mixed_gradient, const AttentionScratch<T>& scratch,
                     float* heads_gradient);

}  // namespace farstep
