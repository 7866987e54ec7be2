// The memory that forward and backward of the fused model share, on any device: arrays that forward
// keeps for backward, and arrays that all layers reuse. The operations of a device have further
// memory of their own.
//
// Bytes in bf16, for R rows (tokens), H query heads of size D, feed-forward width F, vocabulary V.
// Where H D is C, a layer keeps R (14 C + 4 G D + 4 F + 4 H + 8). SwiGLU's output takes 2 R F more
// in each layer that keeps it. With recomputation each layer keeps 4 R C, and one layer's arrays
// serve all. The layers share about R (14 C + 4 G D + 6 F) and the logits of some rows, 6 bytes
// each. fp32 needs about twice as much for each layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/kernels/numbers/bf16.h"
#include "trainer/model/fused/arena.h"
#include "trainer/model/llama/attention_shape.h"
#include "trainer/model/shape/llama_config.h"

namespace farstep {

// The arrays that forward of one block keeps, for R rows.
template <typename T>
struct BlockKept {
  float* attention_input = nullptr;           // (R, C), the residual stream
  float* feed_forward_input = nullptr;        // (R, C), the residual stream
  float* attention_inverse_rms = nullptr;     // (R)
  float* feed_forward_inverse_rms = nullptr;  // (R)
  T* attention_normal = nullptr;              // (R, C)
  T* feed_forward_normal = nullptr;           // (R, C)
  T* heads = nullptr;                         // (R, H D + 2 G D), rotated
  float* log_sums = nullptr;                  // (B, H, T); null if the operations keep it
  T* mixed = nullptr;                         // (R, H D); null if the operations keep it
  T* gate_up = nullptr;                       // (R, 2 F)
  T* gated = nullptr;                         // (R, F), SwiGLU's output; all blocks may share it
  std::size_t place = 0;                      // index of these arrays among all blocks' arrays
};

template <typename T>
struct FusedBuffers {
  std::vector<BlockKept<T>> blocks;    // with recomputation they share all but attention_input
  float* final_input = nullptr;        // (R, C)
  float* final_inverse_rms = nullptr;  // (R)
  T* final_normal = nullptr;           // (R, C)
  float* losses = nullptr;             // (R)

  // The gradient in the residual stream, exact and rounded; one array in fp32. The gradient in a
  // norm's output belongs to the operations.
  float* d_stream = nullptr;   // (R, C)
  T* d_stream_copy = nullptr;  // (R, C)
  T* d_mixed = nullptr;        // (R, H D)
  T* d_heads = nullptr;        // (R, H D + 2 G D)
  T* d_gate_up = nullptr;      // (R, 2 F)
  float* logits = nullptr;     // (logit_rows, V)
  T* d_logits = nullptr;       // (logit_rows, V); in fp32 the same memory as logits
};

struct BufferSizes {
  AttentionShape shape;
  int64_t logit_rows = 0;  // rows whose logits exist at the same time
  bool recompute = false;  // backward repeats a block's forward instead of keeping its arrays
  bool without_attention = false;  // no `mixed` and no `log_sums`
  bool keep_gated = false;         // each block has its own `gated`
};

// Cuts the arrays from `arena`; they are valid until its next cut() and not initialised.
template <typename T>
FusedBuffers<T> fused_buffers(Arena& arena, const LlamaConfig& config, const BufferSizes& sizes);

// The largest memory for logits on a GPU: products of this size still fill one. With a vocabulary
// of 32,000, 512 MiB are 4,096 rows. Their gradient takes half as much again.
inline constexpr int64_t kMostGpuLogitBytes = int64_t{1} << 29;

// What fused_buffers() takes of a device's memory.
struct BufferBytes {
  int64_t all = 0;
  int64_t logits = 0;  // of these, the logits and their gradients
};
template <typename T>
BufferBytes buffer_bytes(const LlamaConfig& config, const BufferSizes& sizes);

}  // namespace farstep
