// AdamW in GPU kernels: clipping, the update of all values and of their bf16 copy, without a wait
// for the norm.
//
// The results are those of AdamW on a CPU, except for the order in which the norm is summed. Called
// by the device's thread.
#pragma once

#include <memory>
#include <span>

#include "trainer/inner/optimizer/adamw_config.h"
#include "trainer/inner/optimizer/optimizer.h"
#include "trainer/model/parameters/parameters.h"

namespace farstep {

// Makes an AdamW for `groups` of `parameters`, which must outlive it. The groups must be adjacent
// and in the layout's order. Null if the parameters are not on a GPU. Only in builds with CUDA.
//
// Snapshots are copied to pinned host memory on a separate stream. The next update waits for them
// on the GPU; its gradients do not.
std::unique_ptr<Optimizer> make_gpu_adamw(const AdamWConfig& config, Parameters& parameters,
                                          std::span<const ParameterSpec> groups);

}  // namespace farstep
