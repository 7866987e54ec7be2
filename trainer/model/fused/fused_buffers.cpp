#include "trainer/model/fused/fused_buffers.h"

#include <type_traits>

namespace farstep {

namespace {

// Cuts all arrays of a block but attention_input and `gated`.
template <typename T>
BlockKept<T> cut_block(ArenaCutter& cutter, const LlamaConfig& config, const BufferSizes& sizes) {
  const auto& shape = sizes.shape;
  const int64_t rows = shape.rows(), hidden = config.hidden;
  BlockKept<T> kept;
  cutter.cut(kept.feed_forward_input, rows * hidden);
  cutter.cut(kept.attention_inverse_rms, rows);
  cutter.cut(kept.feed_forward_inverse_rms, rows);
  cutter.cut(kept.attention_normal, rows * hidden);
  cutter.cut(kept.feed_forward_normal, rows * hidden);
  cutter.cut(kept.heads, rows * shape.width());
  if (!sizes.without_attention) {
    cutter.cut(kept.log_sums, rows * config.heads);
    cutter.cut(kept.mixed, rows * shape.mixed_width());
  }
  cutter.cut(kept.gate_up, rows * 2 * config.intermediate);
  return kept;
}

template <typename T>
std::vector<BlockKept<T>> cut_blocks(ArenaCutter& cutter, const LlamaConfig& config,
                                     const BufferSizes& sizes) {
  std::vector<BlockKept<T>> blocks;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    // With recomputation all blocks use the arrays of the first, and only their inputs are kept.
    const bool shares = sizes.recompute && layer > 0;
    blocks.push_back(shares ? blocks.front() : cut_block<T>(cutter, config, sizes));
    if (layer == 0 || (sizes.keep_gated && !sizes.recompute)) {
      cutter.cut(blocks.back().gated, sizes.shape.rows() * config.intermediate);
    } else {
      blocks.back().gated = blocks.front().gated;
    }
    blocks.back().place = shares ? 0 : static_cast<std::size_t>(layer);
    cutter.cut(blocks.back().attention_input, sizes.shape.rows() * config.hidden);
  }
  return blocks;
}

// In fp32 rounded copies would equal their originals, so they share memory.
template <typename T>
void cut_logits(ArenaCutter& cutter, int64_t values, FusedBuffers<T>& buffers) {
  cutter.cut(buffers.logits, values);
  if constexpr (std::is_same_v<T, float>) {
    buffers.d_logits = buffers.logits;
  } else {
    cutter.cut(buffers.d_logits, values);
  }
}

template <typename T>
FusedBuffers<T> cut_buffers(ArenaCutter& cutter, const LlamaConfig& config,
                            const BufferSizes& sizes) {
  const int64_t rows = sizes.shape.rows(), hidden = config.hidden;
  FusedBuffers<T> buffers{.blocks = cut_blocks<T>(cutter, config, sizes)};
  cutter.cut(buffers.final_input, rows * hidden);
  cutter.cut(buffers.final_inverse_rms, rows);
  cutter.cut(buffers.final_normal, rows * hidden);
  cutter.cut(buffers.losses, rows);
  cutter.cut(buffers.d_stream, rows * hidden);
  cutter.cut(buffers.d_mixed, rows * sizes.shape.mixed_width());
  cutter.cut(buffers.d_heads, rows * sizes.shape.width());
  cutter.cut(buffers.d_gate_up, rows * 2 * config.intermediate);
  if constexpr (std::is_same_v<T, float>) {
    buffers.d_stream_copy = buffers.d_stream;
  } else {
    cutter.cut(buffers.d_stream_copy, rows * hidden);
  }
  cut_logits(cutter, sizes.logit_rows * config.vocabulary, buffers);
  return buffers;
}

}  // namespace

template <typename T>
FusedBuffers<T> fused_buffers(Arena& arena, const LlamaConfig& config, const BufferSizes& sizes) {
  return arena.cut([&](ArenaCutter& cutter) { return cut_buffers<T>(cutter, config, sizes); });
}

// Cut without memory, so that the figures are those of the arrays themselves.
template <typename T>
BufferBytes buffer_bytes(const LlamaConfig& config, const BufferSizes& sizes) {
  ArenaCutter all(nullptr), logits(nullptr);
  auto buffers = cut_buffers<T>(all, config, sizes);
  cut_logits(logits, sizes.logit_rows * config.vocabulary, buffers);
  return {.all = all.bytes(), .logits = logits.bytes()};
}

template FusedBuffers<float> fused_buffers(Arena&, const LlamaConfig&, const BufferSizes&);
template FusedBuffers<BF16> fused_buffers(Arena&, const LlamaConfig&, const BufferSizes&);
template BufferBytes buffer_bytes<float>(const LlamaConfig&, const BufferSizes&);
template BufferBytes buffer_bytes<BF16>(const LlamaConfig&, const BufferSizes&);

}  // namespace farstep
