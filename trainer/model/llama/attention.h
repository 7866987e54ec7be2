// Causal self-attention with rotary positions and grouped queries, by LibTorch's operations.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "trainer/model/llama/rotary_table.h"

namespace farstep {

// Weights of one layer, fp32. There are H query heads of size D, and G heads of keys and values.
// Each of these serves H / G neighbouring query heads. H D is C in most models.
struct AttentionWeights {
  at::Tensor query;   // (H D, C)
  at::Tensor key;     // (G D, C)
  at::Tensor value;   // (G D, C)
  at::Tensor output;  // (C, H D)
};

// Returns (B, T, C) from x (B, T, C), computed in the type of x.
at::Tensor attention(const AttentionWeights& weights, int64_t head_size, RotaryTable& rotary,
                     const at::Tensor& x);

}  // namespace farstep
