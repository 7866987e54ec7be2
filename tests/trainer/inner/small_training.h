// What the tests of inner steps train the small model with.
#pragma once

#include "tests/trainer/model/llama/small_model.h"
#include "trainer/data/tokens/token_batch.h"
#include "trainer/inner/inner_config.h"

namespace farstep {

inline InnerConfig inner_config() {
  InnerConfig config;
  config.rate.peak_learning_rate = 0.01;
  return config;
}

// Tokens that look random; another `seed`, others.
inline TokenBatch some_batch(int64_t sequences, int64_t length, int64_t seed) {
  TokenBatch batch{.sequences = sequences, .length = length, .tokens = {}};
  for (int64_t i = 0; i < sequences * (length + 1); ++i) {
    batch.tokens.push_back((i * i * 7 + seed * 13 + i / 3) % kSmallConfig.vocabulary);
  }
  return batch;
}

}  // namespace farstep
