// All memory that a forward and backward of the fused model works in, as one piece: what forward
// keeps for backward, and what is used again from layer to layer.
//
// Bytes of bf16 compute, with R rows (tokens), C = H D wide, F inside the feed-forward, V
// vocabulary: a layer keeps R (14 C + 4 G D + 4 F + 4 H + 8), and all layers share about R (14 C +
// 4 G D + 6 F) and the chunk's logits (kLogitValues, 6 bytes each). fp32 keeps about twice that of
// a layer.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "trainer/model/fused_attention.h"
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
  std::vector<BlockKept<T>> blocks;
  float* final_input = nullptr;        // (R, C)
  float* final_inverse_rms = nullptr;  // (R)
  T* final_normal = nullptr;           // (R, C)
  float* losses = nullptr;             // (R)

  // The gradient in the residual stream, and it rounded; in fp32 one and the same.
  float* d_stream = nullptr;       // (R, C)
  T* d_stream_copy = nullptr;      // (R, C)
  float* d_normal = nullptr;       // (R, C), in a norm's output
  T* d_mixed = nullptr;            // (R, C)
  float* d_heads_exact = nullptr;  // (R, C + 2 G D)
  T* d_heads = nullptr;            // (R, C + 2 G D)
  T* d_gate_up = nullptr;          // (R, 2 F)
  T* gated = nullptr;              // (R, F), SwiGLU's output
  float* product = nullptr;        // (kProductRows, max(C + 2 G D, 2 F))
  float* logits = nullptr;         // (logit_rows, V)
  T* d_logits = nullptr;           // (logit_rows, V); in fp32 where the logits are
  float* norm_parts = nullptr;     // (threads, C), of a norm's weight gradient
  AttentionScratch<T> attention;
};

// Rows of a product that a kernel takes further while it is in the cache.
constexpr int64_t kProductRows = 512;
// Most logits at once.
constexpr int64_t kLogitValues = int64_t{1} << 24;

// Rows whose logits are there at once.
int64_t logit_rows(int64_t rows, int64_t vocabulary);

AttentionShape attention_shape(const LlamaConfig& config, int64_t sequences, int64_t length);

// Owns the memory; a later shape reuses it, and only a larger one makes it grow. Not thread-safe.
template <typename T>
class BufferPool {
 public:
  // Buffers for sequences of that shape on the calling thread's number of threads, valid until the
  // next call; what they hold is undefined.
  FusedBuffers<T> buffers(const LlamaConfig& config, int64_t sequences, int64_t length);

  int64_t bytes() const { return memory_.defined() ? memory_.numel() : 0; }

 private:
  at::Tensor memory_;  // bytes
};

}  // namespace farstep
