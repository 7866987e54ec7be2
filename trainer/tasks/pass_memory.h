// The memory that forward and backward of a micro-batch take on a device, besides parameters,
// gradients and the optimizer's state.
//
// Of the fused language model on a CPU the figures are those of its arrays. On a GPU the memory of
// LibTorch's libraries is left out. Of autograd they are what it keeps for backward, and within
// 15 % of what was measured (docs/results/memory.md). Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "trainer/model/device_config.h"
#include "trainer/model/shape/convnet_config.h"
#include "trainer/model/shape/llama_config.h"
#include "trainer/model/shape/model_config.h"

namespace farstep {

struct PassMemory {
  int64_t weight_copies_bytes = 0;  // the weights in the type of the matrix products
  int64_t activations_bytes = 0;
  int64_t logits_bytes = 0;
};

// How a device computes. `auto` is bf16 on a GPU and fp32 on a CPU.
struct PassTerms {
  const DeviceConfig& device;
  ComputeType compute = ComputeType::kAuto;
  StepKind step = StepKind::kFused;
};

// Returns what `sequences` of `length` tokens take.
PassMemory llama_pass_memory(const LlamaConfig& config, const PassTerms& terms, int64_t sequences,
                             int64_t length);

// Returns what `images` take.
PassMemory convnet_pass_memory(const ConvNetConfig& config, const PassTerms& terms, int64_t images);

}  // namespace farstep
