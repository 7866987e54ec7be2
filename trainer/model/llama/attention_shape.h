// The shape of attention's input: rows of queries, keys and values of some sequences.
#pragma once

#include <cstdint>

#include "trainer/model/shape/llama_config.h"

namespace farstep {

struct AttentionShape {
  int64_t sequences = 0, length = 0;  // B, T: B T rows
  int64_t heads = 0, kv_heads = 0;    // H, G
  int64_t head_size = 0;              // D

  int64_t rows() const { return sequences * length; }
  int64_t width() const { return (heads + 2 * kv_heads) * head_size; }  // of a row
  int64_t mixed_width() const { return heads * head_size; }
};

inline AttentionShape attention_shape(const LlamaConfig& config, int64_t sequences,
                                      int64_t length) {
  return {.sequences = sequences,
          .length = length,
          .heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_size = config.head_size()};
}

}  // namespace farstep
