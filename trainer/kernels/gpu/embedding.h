// The embedding on a GPU: trainer/kernels/embedding.h over arrays in its memory.
//
// A launch returns CUDA's error code. No sum depends on the order in which threads run, so equal
// calls give equal bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/base/memory/arena_cutter.h"
#include "trainer/kernels/gpu/token_order.h"

namespace farstep {

// Writes to x (rows, width) the rows of table (vocabulary, width) that the tokens select.
[[nodiscard]] cudaError_t launch_embed(const float* table, const int64_t* tokens, int64_t rows,
                                       int64_t width, float* x, cudaStream_t stream);

// The inputs of backward: x_gradient (rows, width) and tokens (rows) below `vocabulary`, with fewer
// than 2^31 rows.
struct EmbedBackward {
  const float* x_gradient = nullptr;
  const int64_t* tokens = nullptr;
  int64_t rows = 0, width = 0, vocabulary = 0;
};

// Working memory of backward.
struct EmbedRoom {
  TokenOrder order;
  float* parts = nullptr;
};

// Cuts the working memory for `rows` rows; returns CUDA's error code.
[[nodiscard]] cudaError_t cut_embed_room(ArenaCutter& cutter, int64_t rows, int64_t width,
                                         EmbedRoom& room);

// Adds every row of x_gradient to its token's row of table_gradient (vocabulary, width). The rows
// are sorted by token and cut into parts of equal size, so that many blocks add up a frequent
// token. The order of additions depends on the tokens only. A token whose rows are all in one part
// is added up in order of its rows, as on a CPU.
[[nodiscard]] cudaError_t launch_embed_backward(const EmbedBackward& backward,
                                                const EmbedRoom& room, float* table_gradient,
                                                cudaStream_t stream);

}  // namespace farstep
