// SwiGLU, the feed-forward part of a LLaMA block.
#pragma once

#include <ATen/ATen.h>

namespace farstep {

// Weights of one layer, fp32.
struct FeedForwardWeights {
  at::Tensor gate;  // (F, C)
  at::Tensor up;    // (F, C)
  at::Tensor down;  // (C, F)
};

// down(silu(gate(x)) * up(x)): x (B, T, C) -> (B, T, C), computed in x's type.
at::Tensor feed_forward(const FeedForwardWeights& weights, const at::Tensor& x);

}  // namespace farstep
