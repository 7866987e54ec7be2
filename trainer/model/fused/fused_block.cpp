#include "trainer/model/fused/fused_block.h"

namespace farstep {

namespace {

template <typename T>
void feed_forward_backward(FusedOps<T>& ops, const PassContext<T>& context,
                           const BlockWeights<T>& weights, const BlockKept<T>& kept) {
  ops.gate_backward(context, weights.down, kept);
  ops.linear_backward(context, weights.gate_up, context.buffers.d_gate_up,
                      kept.feed_forward_normal);
  ops.normalise_backward(context, weights.feed_forward_norm, kept.feed_forward_input,
                         kept.feed_forward_inverse_rms);
}

template <typename T>
void attention_backward(FusedOps<T>& ops, const PassContext<T>& context,
                        const BlockWeights<T>& weights, const BlockKept<T>& kept) {
  ops.output_backward(context, weights.output, kept);
  ops.attend_backward(context, kept);
  ops.linear_backward(context, weights.heads, context.buffers.d_heads, kept.attention_normal);
  ops.normalise_backward(context, weights.attention_norm, kept.attention_input,
                         kept.attention_inverse_rms);
}

}  // namespace

// x + attention(norm(x)), then the same with the feed-forward. normalise() copies its input to
// `sum`, and add_linear() adds the branch there.
template <typename T>
void block_forward(FusedOps<T>& ops, const PassContext<T>& context, const BlockWeights<T>& weights,
                   const BlockKept<T>& kept, float* output) {
  ops.normalise(context, weights.attention_norm, kept.attention_input, kept.attention_normal,
                kept.attention_inverse_rms, /*sum=*/kept.feed_forward_input);
  ops.project_heads(context, weights.heads, kept);
  ops.attend(context, kept);
  ops.add_linear(context, weights.output, ops.mixed(kept), kept.attention_input,
                 kept.feed_forward_input);
  ops.normalise(context, weights.feed_forward_norm, kept.feed_forward_input,
                kept.feed_forward_normal, kept.feed_forward_inverse_rms, /*sum=*/output);
  ops.gate(context, weights.gate_up, kept);
  // A recomputed block needs no output: the next block's input was kept.
  if (output == nullptr) return;
  ops.add_linear(context, weights.down, kept.gated, kept.feed_forward_input, output);
}

template <typename T>
void block_backward(FusedOps<T>& ops, const PassContext<T>& context, const BlockWeights<T>& weights,
                    const BlockKept<T>& kept) {
  feed_forward_backward(ops, context, weights, kept);
  attention_backward(ops, context, weights, kept);
}

template void block_forward(FusedOps<float>&, const PassContext<float>&, const BlockWeights<float>&,
                            const BlockKept<float>&, float*);
template void block_forward(FusedOps<BF16>&, const PassContext<BF16>&, const BlockWeights<BF16>&,
                            const BlockKept<BF16>&, float*);
template void block_backward(FusedOps<float>&, const PassContext<float>&,
                             const BlockWeights<float>&, const BlockKept<float>&);
template void block_backward(FusedOps<BF16>&, const PassContext<BF16>&, const BlockWeights<BF16>&,
                             const BlockKept<BF16>&);

}  // namespace farstep
