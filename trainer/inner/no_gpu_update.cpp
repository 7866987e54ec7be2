// What builds without CUDA have of gpu_update.h, gpu_step.h and graph_recorder.h.
#include "trainer/inner/gpu_step.h"
#include "trainer/inner/gpu_update.h"
#include "trainer/inner/graph_recorder.h"

namespace farstep {

std::unique_ptr<GpuUpdate> make_gpu_update(Parameters&, std::span<const DecayStretch>) {
  return nullptr;
}

std::unique_ptr<GpuStep> make_gpu_step(TrainableModel&, DeferredUpdate&,
                                       const std::optional<double>&,
                                       std::unique_ptr<WorkRecorder>) {
  return nullptr;
}

std::unique_ptr<WorkRecorder> make_graph_recorder(at::Device) {
  return nullptr;
}

}  // namespace farstep
