// Causal attention and its gradients over rows of queries, keys and values as the projections leave
// them: tile by tile, so that scores are never whole in memory, and without copies for grouped
// queries (Dao 2023 has the recomputation in backward). bf16 ones by kernels/amx_attention where
// the processor has its matrix instructions.
//
// T is float or BF16. Spreads over the calling thread's threads; not thread-safe.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "trainer/base/arena_cutter.h"
#include "trainer/kernels/amx.h"
#include "trainer/kernels/amx_attention.h"
#include "trainer/kernels/bf16.h"
#include "trainer/model/attention_shape.h"

namespace farstep {

// Queries of a tile.
inline int64_t tile_rows(const AttentionShape& shape) {
  return shape.length < 128 ? shape.length : 128;
}

// What one thread needs to work on a tile, for every thread; or, where `amx` is not empty, that.
template <typename T>
struct AttentionScratch {
  float *scores = nullptr, *gradient = nullptr;     // (threads, tile_rows, T)
  T *probabilities = nullptr, *d_scores = nullptr;  // (threads, tile_rows, T)
  float* mixed = nullptr;                           // (threads, tile_rows, D)
  std::vector<AmxAttentionScratch> amx;             // (threads)
};

// What attention works with: of the AMX kernels, or of tiles of whole products.
template <typename T>
AttentionScratch<T> cut_attention_scratch(ArenaCutter& cutter, const AttentionShape& shape,
                                          int64_t threads, bool by_amx);

// Whether the AMX kernels can be had, and so are the better way.
template <typename T>
bool attends_by_amx() {
  return std::is_same_v<T, BF16> && has_amx();
}

// What forward took and left.
template <typename T>
struct AttentionKept {
  const T *heads = nullptr, *mixed = nullptr;
  const float* log_sums = nullptr;
};

// mixed (rows, H D) from heads (rows, width): queries, keys, values; leaves what backward needs in
// log_sums (B, H, T).
template <typename T>
void attend(const AttentionShape& shape, const T* heads, const AttentionScratch<T>& scratch,
            T* mixed, float* log_sums);

// The gradient in heads, fp32 (rows, width), from that in mixed (rows, H D).
template <typename T>
void attend_backward(const AttentionShape& shape, const AttentionKept<T>& kept,
                     const T* mixed_gradient, const AttentionScratch<T>& scratch,
                     float* heads_gradient);

}  // namespace farstep
