// A model small enough for unit tests.
#pragma once

#include <memory>

#include "trainer/model/llama.h"

namespace farstep {

inline constexpr int64_t kSmallVocabulary = 32;

inline std::unique_ptr<Llama> small_model() {
  LlamaConfig config;
  config.vocabulary = kSmallVocabulary;
  config.hidden = 16;
  config.intermediate = 32;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.init_std = 0.3;
  auto model = std::make_unique<Llama>(config, at::kCPU, ComputeType::kFP32);
  model->parameters().initialise(7);
  return model;
}

}  // namespace farstep
