// What builds without CUDA have of gpu_update.h.
#include "trainer/inner/gpu_update.h"

namespace farstep {

std::unique_ptr<GpuUpdate> make_gpu_update(Parameters&, std::span<const DecayStretch>) {
  return nullptr;
}

}  // namespace farstep
