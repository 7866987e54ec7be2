// The sum of gradients that lie on GPUs, by NCCL: one thread a GPU in the one process.
//
// A bucket travels on a stream of its own as soon as the GPU has made it, while the next ones are
// made; host threads wait for each other when all is under way, and never for a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "trainer/reduction/site_reduction.h"

namespace farstep {

struct GpuGradients {
  int gpu = 0;              // its index
  float* values = nullptr;  // the flat gradient, which stays where it is
  // The cudaStream_t that the calling thread gives the GPU its work by.
  std::function<void*()> current_stream = {};
};

// Of GPUs all different, with `size` values each, both above 0. Adds up whatever the gradients hold
// once, so that all connections are there. A step that was abandoned was the last. Null if the
// program was built without NCCL; throws ConfigError if its library cannot be loaded, InternalError
// if NCCL or CUDA fails, also in a step.
std::unique_ptr<SiteReduction> make_nccl_reduction(std::vector<GpuGradients> gpus, int64_t size,
                                                   int64_t bucket_values);

}  // namespace farstep
