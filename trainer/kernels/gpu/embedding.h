// The embedding on a GPU: the contracts of trainer/kernels/embedding.h over arrays in its memory.
//
// Every function gives the stream its work and returns what CUDA says of that. Nothing depends on
// the order in which threads come to it, so equal calls give equal bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace farstep {

// x (rows, width): the rows of table (vocabulary, width) that the tokens name.
[[nodiscard]] cudaError_t launch_embed(const float* table, const int64_t* tokens, int64_t rows,
                                       int64_t width, float* x, cudaStream_t stream);

// Adds every row of x_gradient (rows, width) to the row of table_gradient (vocabulary, width) that
// its token names, in order of the rows. `order` (rows) is left with the rows in order of their
// tokens, which takes rows^2 comparisons of numbers in shared memory; after that a block adds up
// the rows of one token, so the commonest token alone bounds the time.
[[nodiscard]] cudaError_t launch_embed_backward(const float* x_gradient, const int64_t* tokens,
                                                int64_t rows, int64_t width, int32_t* order,
                                                float* table_gradient, cudaStream_t stream);

}  // namespace farstep
