// What a step of a model must compute: the numerator of MFU.
#pragma once

#include "trainer/model/llama/llama_layout.h"

namespace farstep {

// Operations of forward and backward on `tokens` tokens in sequences of `length`: 6 a parameter
// outside an untied embedding and token, and causal attention.
inline double step_operations(const LlamaConfig& shape, int64_t tokens, int64_t length) {
  int64_t parameters = 0;
  for (const auto& spec : llama_layout(shape)) {
    if (spec.name != "model.embed_tokens.weight" || shape.tied_embeddings) {
      parameters += spec.size();
    }
  }
  // Scores and mixing, 2 operations each, forward once and backward twice; half is masked.
  const int64_t attention = 6 * shape.layers * shape.heads * shape.head_size() * length;
  return static_cast<double>(6 * parameters + attention) * static_cast<double>(tokens);
}

}  // namespace farstep
