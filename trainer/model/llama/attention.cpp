#include "trainer/model/llama/attention.h"

#include "trainer/model/llama/project.h"

namespace farstep {

namespace {

// (B, T, heads D) -> (B, heads, T, D)
at::Tensor split_heads(const at::Tensor& x, int64_t head_size) {
  return x.view({x.size(0), x.size(1), -1, head_size}).transpose(1, 2);
}

// (B, G, T, D) -> (B, G times, T, D): each head `times` times in a row. A copy for each query head:
// this file is the oracle, so it is plain and not fast.
at::Tensor repeat_heads(const at::Tensor& x, int64_t times) {
  return times == 1 ? x : x.repeat_interleave(times, 1);
}

}  // namespace

at::Tensor attention(const AttentionWeights& weights, int64_t head_size, RotaryTable& rotary,
                     const at::Tensor& x) {
  const auto query = rotary.rotate(split_heads(project(x, weights.query), head_size));
  const auto key = rotary.rotate(split_heads(project(x, weights.key), head_size));
  const auto value = split_heads(project(x, weights.value), head_size);
  const int64_t group = query.size(1) / key.size(1);
  const auto mixed = at::scaled_dot_product_attention(  // (B, H, T, D)
      query, repeat_heads(key, group), repeat_heads(value, group), /*attn_mask=*/{},
      /*dropout_p=*/0.0, /*is_causal=*/true);
  return project(mixed.transpose(1, 2).flatten(2), weights.output);
}

}  // namespace farstep
