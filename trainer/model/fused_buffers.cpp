#include "trainer/model/fused_buffers.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <type_traits>

namespace farstep {

namespace {

// Hands out pieces of memory one after the other; without memory it only counts.
class Cutter {
 public:
  explicit Cutter(std::byte* memory) : memory_(memory) {}

  template <typename T>
  void cut(T*& piece, int64_t values) {
    piece = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    const int64_t bytes = values * static_cast<int64_t>(sizeof(T));
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  int64_t bytes() const { return bytes_; }

 private:
  static constexpr int64_t kAlignment = 64;
  std::byte* const memory_;
  int64_t bytes_ = 0;
};

template <typename T>
BlockKept<T> cut_block(Cutter& cutter, const LlamaConfig& config, const AttentionShape& shape) {
  const int64_t rows = shape.rows(), hidden = config.hidden;
  BlockKept<T> kept;
  cutter.cut(kept.attention_input, rows * hidden);
  cutter.cut(kept.feed_forward_input, rows * hidden);
  cutter.cut(kept.attention_inverse_rms, rows);
  cutter.cut(kept.feed_forward_inverse_rms, rows);
  cutter.cut(kept.attention_normal, rows * hidden);
  cutter.cut(kept.feed_forward_normal, rows * hidden);
  cutter.cut(kept.heads, rows * shape.width());
  cutter.cut(kept.log_sums, rows * config.heads);
  cutter.cut(kept.mixed, rows * hidden);
  cutter.cut(kept.gate_up, rows * 2 * config.intermediate);
  return kept;
}

template <typename T>
FusedBuffers<T> cut_all(Cutter& cutter, const LlamaConfig& config, const AttentionShape& shape) {
  const int64_t rows = shape.rows(), hidden = config.hidden, threads = at::get_num_threads();
  FusedBuffers<T> buffers;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    buffers.blocks.push_back(cut_block<T>(cutter, config, shape));
  }
  cutter.cut(buffers.final_input, rows * hidden);
  cutter.cut(buffers.final_inverse_rms, rows);
  cutter.cut(buffers.final_normal, rows * hidden);
  cutter.cut(buffers.losses, rows);
  cutter.cut(buffers.d_stream, rows * hidden);
  cutter.cut(buffers.d_normal, rows * hidden);
  cutter.cut(buffers.d_mixed, rows * hidden);
  cutter.cut(buffers.d_heads_exact, rows * shape.width());
  cutter.cut(buffers.d_heads, rows * shape.width());
  cutter.cut(buffers.d_gate_up, rows * 2 * config.intermediate);
  cutter.cut(buffers.gated, rows * config.intermediate);
  cutter.cut(buffers.product,
             std::min(rows, kProductRows) * std::max(shape.width(), 2 * config.intermediate));
  const int64_t logits = logit_rows(rows, config.vocabulary) * config.vocabulary;
  cutter.cut(buffers.logits, logits);
  cutter.cut(buffers.norm_parts, threads * hidden);
  if constexpr (std::is_same_v<T, float>) {
    buffers.d_stream_copy = buffers.d_stream;
    buffers.d_logits = buffers.logits;
  } else {
    cutter.cut(buffers.d_stream_copy, rows * hidden);
    cutter.cut(buffers.d_logits, logits);
  }
  const int64_t tiles = threads * shape.tile_rows();
  cutter.cut(buffers.attention.scores, tiles * shape.length);
  cutter.cut(buffers.attention.gradient, tiles * shape.length);
  cutter.cut(buffers.attention.probabilities, tiles * shape.length);
  cutter.cut(buffers.attention.d_scores, tiles * shape.length);
  cutter.cut(buffers.attention.mixed, tiles * shape.head_size);
  return buffers;
}

}  // namespace

int64_t logit_rows(int64_t rows, int64_t vocabulary) {
  return std::clamp<int64_t>(kLogitValues / vocabulary, 1, std::min(rows, kProductRows));
}

AttentionShape attention_shape(const LlamaConfig& config, int64_t sequences, int64_t length) {
  return {.sequences = sequences,
          .length = length,
          .heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_size = config.head_size()};
}

template <typename T>
FusedBuffers<T> BufferPool<T>::buffers(const LlamaConfig& config, int64_t sequences,
                                       int64_t length) {
  const auto shape = attention_shape(config, sequences, length);
  Cutter counter(nullptr);
  cut_all<T>(counter, config, shape);
  if (bytes() < counter.bytes()) {
    memory_.reset();  // first: both at once might not fit
    memory_ = at::empty({counter.bytes()}, at::kByte);
  }
  Cutter cutter(static_cast<std::byte*>(memory_.mutable_data_ptr()));
  return cut_all<T>(cutter, config, shape);
}

template class BufferPool<float>;
template class BufferPool<BF16>;

}  // namespace farstep
