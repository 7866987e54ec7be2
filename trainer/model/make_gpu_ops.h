// Whether the fused model runs on a GPU, and its operations there.
#pragma once

#include <memory>

#include "trainer/model/fused_ops.h"

namespace farstep {

// The operations of a model of that shape on an open GPU, in bf16, its linear layers with FP8 if
// so; null where the GPU, the libraries for it or this build cannot: it takes a GPU since Ampere
// (sm_80), heads of a multiple of 8 values, 256 at most, and a build with CUDA. Throws ConfigError
// where the GPU has no FP8.
std::unique_ptr<FusedOps<BF16>> make_gpu_ops(const LlamaConfig& shape, at::Device device, bool fp8);

}  // namespace farstep
