// AdamW's update on a GPU: clipping, all values and their bf16 copy in one go, without waiting for
// the norm.
//
// Called by the device's thread, in the order of DeferredUpdate.
#pragma once

#include <memory>
#include <span>

#include "trainer/inner/deferred_update.h"
#include "trainer/kernels/adamw.h"
#include "trainer/model/parameters.h"

namespace farstep {

class GpuUpdate {
 public:
  virtual ~GpuUpdate() = default;

  // The next step's update, clipped to `clip_norm` (infinite: not clipped). `step` is of what
  // decays; its gradient_factor is not used.
  virtual void ask(const AdamWStep& step, double clip_norm) = 0;
  // Updates all values and their moments from their gradients; see DeferredUpdate.
  virtual void give(const at::Tensor& first_moment, const at::Tensor& second_moment,
                    const float* losses, int64_t count) = 0;
  virtual void fetch() = 0;
  virtual UpdateOutcome wait() = 0;
};

// Over `parameters`, which must outlive it and consist of `stretches`; null if they are not on a
// GPU, and in a build without CUDA.
std::unique_ptr<GpuUpdate> make_gpu_update(Parameters& parameters,
                                           std::span<const DecayStretch> stretches);

}  // namespace farstep
