// One block of the fused model, forward and backward by hand.
//
// T is float or BF16. Spreads over the calling thread's threads; not thread-safe.
#pragma once

#include <cstdint>

#include "trainer/kernels/rotary.h"
#include "trainer/model/fused_buffers.h"
#include "trainer/model/fused_weights.h"

namespace farstep {

// What all blocks have in common in one pass.
template <typename T>
struct BlockContext {
  const LlamaConfig& config;
  AttentionShape shape;
  RotaryRows rotary;
  const FusedBuffers<T>& buffers;
  bool add = false;  // to the gradients that are there, instead of replacing them
};

// y (rows, C) = RMSNorm of x (rows, C), which goes on in `copy` unless that is null.
template <typename T>
void normalise(const BlockContext<T>& context, const NormWeight& weight, const float* x, T* y,
               float* inverse_rms, float* copy);

// Adds the gradient of d_normal through the norm to buffers.d_stream and its copy, and leaves that
// in the weight.
template <typename T>
void normalise_backward(const BlockContext<T>& context, const NormWeight& weight, const float* x,
                        const float* inverse_rms);

// From kept.attention_input to `output` (rows, C), the next block's input.
template <typename T>
void block_forward(const BlockContext<T>& context, const BlockWeights<T>& weights,
                   const BlockKept<T>& kept, float* output);

// Takes buffers.d_stream and its copy from the block's output to its input.
template <typename T>
void block_backward(const BlockContext<T>& context, const BlockWeights<T>& weights,
                    const BlockKept<T>& kept);

}  // namespace farstep
