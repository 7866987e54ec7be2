// One block of the fused model, forward and backward by hand.
#pragma once

#include "trainer/model/fused_ops.h"

namespace farstep {

// From kept.attention_input to `output` (R, C), the next block's input; without an output only as
// far as backward needs, to make what is kept once more.
template <typename T>
void block_forward(FusedOps<T>& ops, const PassContext<T>& context, const BlockWeights<T>& weights,
                   const BlockKept<T>& kept, float* output);

// Takes d_stream and its copy from the block's output to its input.
template <typename T>
void block_backward(FusedOps<T>& ops, const PassContext<T>& context, const BlockWeights<T>& weights,
                    const BlockKept<T>& kept);

}  // namespace farstep
