// Adds up gradients on GPUs with NCCL; one process has one thread for each GPU.
//
// A bucket is reduced on a stream of its own as soon as the GPU has computed it, while the GPU
// computes the next ones. Host threads wait for each other after all launches, and never for a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "trainer/reduction/site_reduction.h"

namespace farstep {

struct GpuGradients {
  int gpu = 0;              // CUDA's index
  float* values = nullptr;  // the flat gradient, which must stay valid
  // Returns the cudaStream_t on which the calling thread launches work for the GPU.
  std::function<void*()> current_stream = {};
};

// Returns a reduction over different GPUs with `size` values each; size and number are above 0.
// Reduces the gradients' present content once, to open all connections. After an abandoned step it
// cannot be used again. Throws ConfigError if NCCL's library cannot be loaded. Throws InternalError
// if NCCL or CUDA fails, here or in a step. Only in builds with CUDA and NCCL's header.
std::unique_ptr<SiteReduction> make_nccl_reduction(std::vector<GpuGradients> gpus, int64_t size,
                                                   int64_t bucket_values);

}  // namespace farstep
