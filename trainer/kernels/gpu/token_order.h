// Sorts rows by their tokens on a GPU, with the radix sort of NVIDIA's CUB.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/base/memory/arena_cutter.h"

namespace farstep {

// Memory of the GPU for sorting some rows by their tokens.
struct TokenOrder {
  uint32_t *unsorted_tokens = nullptr, *tokens = nullptr;  // (rows)
  int32_t *unsorted_rows = nullptr, *rows = nullptr;       // (rows)
  std::byte* sort = nullptr;
  std::size_t sort_bytes = 0;
};

// Cuts the memory for `rows` rows, fewer than 2^31; returns CUDA's error code.
[[nodiscard]] cudaError_t cut_token_order(ArenaCutter& cutter, int64_t rows, TokenOrder& order);

// Writes to order.tokens the tokens (rows), below `vocabulary`, in ascending order, and to
// order.rows their rows; rows of one token ascend too. Returns CUDA's error code.
[[nodiscard]] cudaError_t launch_token_order(const int64_t* tokens, int64_t rows,
                                             int64_t vocabulary, const TokenOrder& order,
                                             cudaStream_t stream);

}  // namespace farstep
