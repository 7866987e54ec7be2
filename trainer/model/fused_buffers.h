// The memory that forward and backward of the fused model share, on any device: what forward keeps
// for backward, and what is used again from layer to layer. What one device's operations need
// besides is their own.
//
// Bytes of bf16 compute, with R rows (tokens), C = H D wide, F inside the feed-forward, V
// vocabulary: a layer keeps R (14 C + 4 G D + 4 F + 4 H + 8), with recomputation 4 R C and one
// layer the rest; all layers share about R (14 C + 4 G D + 6 F) and the logits of some rows (6
// bytes each). fp32 keeps about twice that of a layer.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/kernels/bf16.h"
#include "trainer/model/arena.h"
#include "trainer/model/attention_shape.h"
#include "trainer/model/llama_config.h"

namespace farstep {

// What forward of one block keeps; R rows.
template <typename T>
struct BlockKept {
  float* attention_input = nullptr;           // (R, C), the residual stream
  float* feed_forward_input = nullptr;        // (R, C), likewise
  float* attention_inverse_rms = nullptr;     // (R)
  float* feed_forward_inverse_rms = nullptr;  // (R)
  T* attention_normal = nullptr;              // (R, C)
  T* feed_forward_normal = nullptr;           // (R, C)
  T* heads = nullptr;                         // (R, C + 2 G D), rotated
  float* log_sums = nullptr;                  // (B, H, T)
  T* mixed = nullptr;                         // (R, C)
  T* gate_up = nullptr;                       // (R, 2 F)
};

template <typename T>
struct FusedBuffers {
  std::vector<BlockKept<T>> blocks;    // with recomputation they differ in attention_input alone
  float* final_input = nullptr;        // (R, C)
  float* final_inverse_rms = nullptr;  // (R)
  T* final_normal = nullptr;           // (R, C)
  float* losses = nullptr;             // (R)

  // The gradient in the residual stream, and it rounded; in fp32 one and the same.
  float* d_stream = nullptr;   // (R, C)
  T* d_stream_copy = nullptr;  // (R, C)
  float* d_normal = nullptr;   // (R, C), in a norm's output
  T* d_mixed = nullptr;        // (R, C)
  T* d_heads = nullptr;        // (R, C + 2 G D)
  T* d_gate_up = nullptr;      // (R, 2 F)
  T* gated = nullptr;          // (R, F), SwiGLU's output
  float* logits = nullptr;     // (logit_rows, V)
  T* d_logits = nullptr;       // (logit_rows, V); in fp32 where the logits are
};

struct BufferSizes {
  AttentionShape shape;
  int64_t logit_rows = 0;  // rows whose logits are there at once
  bool recompute = false;  // a block's forward in backward, instead of keeping what it made
};

// Arrays of `arena`, valid until it is cut once more; what they hold is undefined.
template <typename T>
FusedBuffers<T> fused_buffers(Arena& arena, const LlamaConfig& config, const BufferSizes& sizes);

}  // namespace farstep
