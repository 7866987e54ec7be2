// SwiGLU, the feed-forward part of a LLaMA block, by LibTorch's operations.
#pragma once

#include <ATen/ATen.h>

namespace farstep {

// Weights of one layer, fp32.
struct FeedForwardWeights {
  at::Tensor gate;  // (F, C)
  at::Tensor up;    // (F, C)
  at::Tensor down;  // (C, F)
};

// Returns down(silu(gate(x)) * up(x)): (B, T, C) from x (B, T, C), computed in the type of x.
at::Tensor feed_forward(const FeedForwardWeights& weights, const at::Tensor& x);

}  // namespace farstep
