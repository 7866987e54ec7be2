// Causal self-attention with rotary positions and grouped queries.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "trainer/model/rotary_table.h"

namespace farstep {

// Weights of one layer, fp32: H query heads of size D, C = H D, and G heads of keys and values,
// each for H / G neighbouring query heads.
struct AttentionWeights {
  at::Tensor query;   // (C, C)
  at::Tensor key;     // (G D, C)
  at::Tensor value;   // (G D, C)
  at::Tensor output;  // (C, C)
};

// x (B, T, C) -> (B, T, C), computed in x's type.
at::Tensor attention(const AttentionWeights& weights, int64_t head_size, RotaryTable& rotary,
                     const at::Tensor& x);

}  // namespace farstep
