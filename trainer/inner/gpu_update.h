// AdamW's update on a GPU: clipping, all values and their bf16 copy in one go, without waiting for
// the norm.
//
// Called by the device's thread.
#pragma once

#include <memory>
#include <span>

#include "trainer/kernels/adamw.h"
#include "trainer/model/parameters.h"

namespace farstep {

class GpuUpdate {
 public:
  virtual ~GpuUpdate() = default;

  // Updates all values and their moments from their gradients, clipped to `clip_norm` (infinite:
  // not clipped). `step` is of what decays; its gradient_factor is not used. Returns the gradients'
  // norm once all is done; where that is not finite nothing has changed.
  virtual double run(const AdamWStep& step, double clip_norm, const at::Tensor& first_moment,
                     const at::Tensor& second_moment) = 0;
};

// Over `parameters`, which must outlive it and consist of `stretches`; null in a build without
// CUDA.
std::unique_ptr<GpuUpdate> make_gpu_update(Parameters& parameters,
                                           std::span<const DecayStretch> stretches);

}  // namespace farstep
