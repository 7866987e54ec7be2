// What a step of a model must compute: the numerator of MFU, by both of the formulas in use.
//
// A token costs 6 N + c L d T operations. N are the parameters outside an untied embedding, L the
// layers, d all heads together, and T the sequence's length. Programs differ in c:
//
//   causal   c = 6    half of the scores are masked, and no kernel need compute them. llm.c counts
//                     so, and Farstep's goals
//   full     c = 12   all scores, masked or not. PaLM, nanoGPT, llm-foundry and torchtitan count so
//
// For the 150m preset at T 1024 the full count is 6.5 % larger. A share of 43.6 % by the one is
// 46.4 % by the other. Who compares with another program takes that program's formula, and looks at
// its N: llm.c's has norms, biases and the position embedding, nanoGPT's the tied embedding.
#pragma once

#include "trainer/model/llama/llama_layout.h"

namespace farstep {

struct StepOperations {
  double causal = 0;
  double full = 0;
};

// Operations of forward and backward on `tokens` tokens in sequences of `length`. What a device
// repeats in backward to save memory does not count.
inline StepOperations step_operations(const LlamaConfig& shape, int64_t tokens, int64_t length) {
  int64_t parameters = 0;
  for (const auto& spec : llama_layout(shape)) {
    if (spec.name != "model.embed_tokens.weight" || shape.tied_embeddings) {
      parameters += spec.size();
    }
  }
  // Scores and mixing, 2 operations each a value, forward once and backward twice.
  const int64_t scores = 12 * shape.layers * shape.heads * shape.head_size() * length;
  const auto count = static_cast<double>(tokens);
  return {.causal = static_cast<double>(6 * parameters + scores / 2) * count,
          .full = static_cast<double>(6 * parameters + scores) * count};
}

}  // namespace farstep
