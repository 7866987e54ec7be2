#include "trainer/model/fused_block.h"

namespace farstep {

namespace {

template <typename T>
void feed_forward_backward(FusedOps<T>& ops, const PassContext<T>& context,
                           const BlockWeights<T>& weights, const BlockKept<T>& kept) {
  const auto& buffers = context.buffers;
  const int64_t rows = context.shape.rows();
  const int64_t hidden = context.config.hidden, width = context.config.intermediate;
  ops.gate_backward(context, weights.down, kept);
  ops.multiply(hidden, width, rows, {buffers.d_stream_copy, hidden, true}, {buffers.gated, width},
               {weights.down.gradient, width, context.add});
  ops.multiply(2 * width, hidden, rows, {buffers.d_gate_up, 2 * width, true},
               {kept.feed_forward_normal, hidden}, {weights.gate_up.gradient, hidden, context.add});
  ops.multiply(rows, hidden, 2 * width, {buffers.d_gate_up, 2 * width},
               {weights.gate_up.values, hidden}, {buffers.d_normal, hidden});
  ops.normalise_backward(context, weights.feed_forward_norm, kept.feed_forward_input,
                         kept.feed_forward_inverse_rms);
}

template <typename T>
void attention_backward(FusedOps<T>& ops, const PassContext<T>& context,
                        const BlockWeights<T>& weights, const BlockKept<T>& kept) {
  const auto& buffers = context.buffers;
  const int64_t rows = context.shape.rows();
  const int64_t hidden = context.config.hidden, width = context.shape.width();
  ops.multiply(hidden, hidden, rows, {buffers.d_stream_copy, hidden, true}, {kept.mixed, hidden},
               {weights.output.gradient, hidden, context.add});
  ops.output_backward(context, weights.output);
  ops.attend_backward(context, kept);
  ops.multiply(width, hidden, rows, {buffers.d_heads, width, true}, {kept.attention_normal, hidden},
               {weights.heads.gradient, hidden, context.add});
  ops.multiply(rows, hidden, width, {buffers.d_heads, width}, {weights.heads.values, hidden},
               {buffers.d_normal, hidden});
  ops.normalise_backward(context, weights.attention_norm, kept.attention_input,
                         kept.attention_inverse_rms);
}

}  // namespace

template <typename T>
void block_forward(FusedOps<T>& ops, const PassContext<T>& context, const BlockWeights<T>& weights,
                   const BlockKept<T>& kept, float* output) {
  const int64_t rows = context.shape.rows();
  const int64_t hidden = context.config.hidden, width = context.config.intermediate;
  ops.normalise(context, weights.attention_norm, kept.attention_input, kept.attention_normal,
                kept.attention_inverse_rms, /*copy=*/kept.feed_forward_input);
  ops.project_heads(context, weights.heads, kept);
  ops.attend(context, kept);
  ops.multiply(rows, hidden, hidden, {kept.mixed, hidden}, {weights.output.values, hidden, true},
               {kept.feed_forward_input, hidden, /*add=*/true});
  ops.normalise(context, weights.feed_forward_norm, kept.feed_forward_input,
                kept.feed_forward_normal, kept.feed_forward_inverse_rms, /*copy=*/output);
  ops.gate(context, weights.gate_up, kept);
  if (output == nullptr) return;
  ops.multiply(rows, hidden, width, {context.buffers.gated, width},
               {weights.down.values, width, true}, {output, hidden, /*add=*/true});
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
