// Creates the fused model's operations on a GPU, if the GPU and the build support them.
#pragma once

#include <memory>

#include "trainer/model/fused/fused_ops.h"

namespace farstep {

// Returns the operations for a model of that shape on an open GPU in bf16, with FP8 linear layers
// if requested. Returns null if they are not supported. They need a GPU since Ampere (sm_80) with
// its libraries, and a head size that is a multiple of 8 up to 256. Throws ConfigError if FP8 is
// requested and the GPU has none. Only in builds with CUDA.
std::unique_ptr<FusedOps<BF16>> make_gpu_ops(const LlamaConfig& shape, at::Device device, bool fp8);

}  // namespace farstep
