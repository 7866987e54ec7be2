// A kernel in the place of a small memset of a graph.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace farstep {

// Whether the memset is of at most 32 bytes in a row, which is what the kernel writes.
bool fits_memset_kernel(const cudaMemsetParams& memset);

// Adds a kernel to `graph` that writes what such a memset writes, after the given nodes. Returns
// CUDA's error code, and the new node in `added`.
[[nodiscard]] cudaError_t add_memset_kernel(cudaGraph_t graph, const cudaGraphNode_t* before,
                                            std::size_t num_before, const cudaMemsetParams& memset,
                                            cudaGraphNode_t* added);

}  // namespace farstep
