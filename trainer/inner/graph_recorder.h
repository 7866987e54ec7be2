// Records a GPU's work as CUDA graphs.
//
// What LibTorch allocates while work is recorded comes from a pool of its own, which lives as long
// as the graph. Belongs to the thread that gives the GPU its work, by a stream that is not the
// default one. Only in builds with CUDA.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "trainer/inner/step_graphs.h"

namespace farstep {

// For an open GPU.
std::unique_ptr<WorkRecorder> make_graph_recorder(at::Device device);

}  // namespace farstep
