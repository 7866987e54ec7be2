// The places of the fused model's weights and gradients: pointers into the flat vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/kernels/numbers/bf16.h"
#include "trainer/model/parameters/parameters.h"
#include "trainer/model/shape/llama_config.h"

namespace farstep {

// A matrix of a product, (out, in): its values in the type of the activations, and its fp32
// gradient.
template <typename T>
struct MatrixWeight {
  const T* values = nullptr;
  float* gradient = nullptr;
  int64_t out = 0, in = 0;
  int64_t number = -1;  // among the blocks' linear layers, from 0; -1 for others
};

struct NormWeight {
  const float* values = nullptr;
  float* gradient = nullptr;
  int64_t after = -1, before = -1;  // numbers of the linear layers before and after it
};

template <typename T>
struct BlockWeights {
  NormWeight attention_norm;     // (C)
  MatrixWeight<T> heads;         // queries, keys and values: (H D + 2 G D, C)
  MatrixWeight<T> output;        // (C, H D)
  NormWeight feed_forward_norm;  // (C)
  MatrixWeight<T> gate_up;       // (2 F, C)
  MatrixWeight<T> down;          // (C, F)
  int64_t begin = 0, end = 0;    // of the block in the flat vectors
};

template <typename T>
struct FusedWeights {
  MatrixWeight<float> embedding;  // (V, C), the flat vectors' first part
  std::vector<BlockWeights<T>> blocks;
  int64_t blocks_end = 0;  // where final_norm begins; an untied head follows it
  NormWeight final_norm;   // (C)
  MatrixWeight<T> head;    // (V, C); the embedding itself if it is tied
  int64_t version = 0;     // changes when the values change
};

// Returns pointers that are valid as long as `parameters`; for BF16 into parameters.bf16_values().
template <typename T>
FusedWeights<T> fused_weights(Parameters& parameters, const LlamaConfig& config);

}  // namespace farstep
