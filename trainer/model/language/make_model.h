// The model that a run's config asks for.
#pragma once

#include <memory>

#include "trainer/model/shape/llama_config.h"
#include "trainer/model/shape/model_config.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

// A model of that shape on `device`, all parameters 0: the fused one where `step` asks for it and
// the device can run it (a CPU slice, or a GPU in bf16 or fp8 as make_gpu_ops has it), else Llama.
// Where `asked` leaves the type of the products open it is bf16 on a GPU and fp32 on a CPU; a run's
// sites have agreed on one before. `recompute`: as DeviceConfig has it. Throws ConfigError where
// that or fp8 is asked for and the model is not the fused one, or the GPU has no FP8.
std::unique_ptr<TrainableModel> make_model(const LlamaConfig& shape, at::Device device,
                                           ComputeType asked, StepKind step, bool recompute);

}  // namespace farstep
