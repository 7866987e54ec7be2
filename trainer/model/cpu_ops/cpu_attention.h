// Causal attention and its gradients over rows of queries, keys and values, as the projections
// write them. Works tile by tile, so that memory never holds all scores. Backward recomputes the
// scores (Dao 2023). Grouped queries need no copies. bf16 is computed one head at a time
// (kernels/products/head_attention) if chosen_attention() names instructions for it.
//
// T is float or BF16. Uses the calling thread's threads; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <vector>

#include "trainer/base/memory/arena_cutter.h"
#include "trainer/kernels/numbers/bf16.h"
#include "trainer/kernels/products/head_attention.h"
#include "trainer/model/llama/attention_shape.h"

namespace farstep {

// Returns the queries of a tile: a quarter of the sequence in whole panels of 32. A smaller tile
// computes fewer scores that causality hides, but each tile packs all keys that it sees. So more
// than 128 gain nothing, nor do fewer in a long sequence (docs/results/products.md).
inline int64_t tile_rows(const AttentionShape& shape) {
  constexpr int64_t kPanel = 32, kMost = 128;
  return std::min(shape.length, std::clamp(shape.length / 4 / kPanel * kPanel, kPanel, kMost));
}

// The working memory of all threads: for tiles, or for heads with the instructions `by`.
template <typename T>
struct AttentionScratch {
  float *scores = nullptr, *gradient = nullptr;     // (threads, tile_rows, T)
  T *probabilities = nullptr, *d_scores = nullptr;  // (threads, tile_rows, T)
  float* mixed = nullptr;                           // (threads, tile_rows, D)
  std::optional<InstructionSet> by;
  std::vector<HeadScratch> heads;  // (threads)
};

// Cuts the working memory for heads with these instructions, or for tiles of matrix products. fp32
// has tiles only.
template <typename T>
AttentionScratch<T> cut_attention_scratch(ArenaCutter& cutter, const AttentionShape& shape,
                                          int64_t threads, std::optional<InstructionSet> by);

// Inputs and outputs of forward that backward reads.
template <typename T>
struct AttentionKept {
  const T *heads = nullptr, *mixed = nullptr;
  const float* log_sums = nullptr;
};

// Writes mixed (rows, H D) from heads (rows, width), which are queries, keys and values. Writes
// log_sums (B, H, T) for backward. This and the next throw Stopped soon after `stop` is requested.
template <typename T>
void attend(const AttentionShape& shape, const T* heads, const AttentionScratch<T>& scratch,
            T* mixed, float* log_sums, const std::stop_token& stop = {});

// Writes the gradient in heads, fp32 (rows, width), from that in mixed (rows, H D).
template <typename T>
void attend_backward(const AttentionShape& shape, const AttentionKept<T>& kept,
                     const T* mixed_gradient, const AttentionScratch<T>& scratch,
                     float* heads_gradient, const std::stop_token& stop = {});

}  // namespace farstep
