// Forward and backward of one block of the fused model.
#pragma once

#include "trainer/model/fused/fused_ops.h"

namespace farstep {

// Computes the block from kept.attention_input to `output` (R, C), the next block's input, which is
// complete after that block's first norm. With a null output it stops after the arrays that
// backward needs, to recompute them.
template <typename T>
void block_forward(FusedOps<T>& ops, const PassContext<T>& context, const BlockWeights<T>& weights,
                   const BlockKept<T>& kept, float* output);

// Turns d_stream and the rounded gradient of the block's output into those of its input.
template <typename T>
void block_backward(FusedOps<T>& ops, const PassContext<T>& context, const BlockWeights<T>& weights,
                    const BlockKept<T>& kept);

}  // namespace farstep
