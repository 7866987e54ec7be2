// A model small enough for unit tests; its sizes differ, so that none can stand for another.
#pragma once

#include "trainer/model/llama/llama.h"
#include "trainer/model/llama/llama_layout.h"

namespace farstep {

inline const LlamaConfig kSmallConfig{.vocabulary = 29,
                                      .hidden = 12,
                                      .intermediate = 10,
                                      .layers = 2,
                                      .heads = 3,
                                      .kv_heads = 1,
                                      .init_std = 0.3,
                                      .tied_embeddings = true};

inline Llama small_model(ComputeType compute = ComputeType::kFP32) {
  Llama model(kSmallConfig, at::kCPU, compute);
  model.parameters().initialise(5);
  return model;
}

}  // namespace farstep
