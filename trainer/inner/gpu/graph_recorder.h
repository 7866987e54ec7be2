// Records a GPU's work as CUDA graphs.
//
// Memory that LibTorch allocates during a recording comes from a separate pool, which lives as long
// as the graph. Belongs to the thread that drives the GPU; its current stream must not be the
// default stream. Only in builds with CUDA.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "trainer/inner/gpu/step_graphs.h"

namespace farstep {

// Makes a recorder for an open GPU.
std::unique_ptr<StepRecorder> make_graph_recorder(at::Device device);

}  // namespace farstep
