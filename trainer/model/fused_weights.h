// Where the fused model finds its weights and leaves their gradients: pointers into the flat
// vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/kernels/bf16.h"
#include "trainer/model/parameters.h"

namespace farstep {

// A matrix that takes part in products: its values in the type of the activations, and its fp32
// gradient. Both (out, in).
template <typename T>
struct MatrixWeight {
  const T* values = nullptr;
  float* gradient = nullptr;
  int64_t out = 0, in = 0;
  int64_t number = -1;  // among the blocks' linear layers, from 0
};

struct NormWeight {
  const float* values = nullptr;
  float* gradient = nullptr;
};

template <typename T>
struct BlockWeights {
  NormWeight attention_norm;     // (C)
  MatrixWeight<T> heads;         // queries, keys and values: (C + 2 G D, C)
  MatrixWeight<T> output;        // (C, C)
  NormWeight feed_forward_norm;  // (C)
  MatrixWeight<T> gate_up;       // (2 F, C)
  MatrixWeight<T> down;          // (C, F)
  int64_t begin = 0, end = 0;    // of all these in the flat vectors
};

template <typename T>
struct FusedWeights {
  MatrixWeight<float> embedding;  // (V, C), the flat vectors' first part
  std::vector<BlockWeights<T>> blocks;
  int64_t blocks_end = 0;  // where final_norm, and then an untied head, begin in the flat vectors
  NormWeight final_norm;   // (C)
  MatrixWeight<T> head;    // (V, C); the embedding itself where it is tied
  int64_t version = 0;     // another one once the values have changed
};

// Pointers that stay valid as long as `parameters`; with T = BF16 to parameters.bf16_values().
template <typename T>
FusedWeights<T> fused_weights(Parameters& parameters, const LlamaConfig& config);

}  // namespace farstep
