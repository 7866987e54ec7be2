// The model that a run's config asks for.
#pragma once

#include <memory>

#include "trainer/config/run_config.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

// A model of that shape on `device`, all parameters 0: the fused one where the config asks for it
// and the device can run it (a CPU slice, or a GPU in bf16 or fp8 as make_gpu_ops has it), else
// Llama. `recompute`: as DeviceConfig has it. Throws ConfigError where that or fp8 is asked for and
// the model is not the fused one, or the GPU has no FP8.
std::unique_ptr<TrainableModel> make_model(const LlamaConfig& shape, at::Device device,
                                           const InnerConfig& config, bool recompute);

}  // namespace farstep
