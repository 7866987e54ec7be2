// Shortens the pauses of a GPU around the small memsets of a recorded graph.
#pragma once

#include <cuda_runtime_api.h>

namespace farstep {

// Replaces each memset of at most 32 bytes in `graph` by a kernel that writes the same bytes and
// has the same edges. The graph must not be instantiated yet. Throws InternalError if CUDA refuses;
// then the graph can only be destroyed. Only in builds with CUDA.
void turn_memsets_into_kernels(cudaGraph_t graph);

}  // namespace farstep
