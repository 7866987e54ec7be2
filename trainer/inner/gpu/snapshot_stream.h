// Copies a GPU's vectors to pinned host memory while the GPU works on.
//
// Belongs to the device's thread; any one other thread may call wait(). Only in builds with CUDA.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <span>
#include <string>

#include "trainer/base/memory/named_buffers.h"
#include "trainer/cuda/gpu_stream.h"
#include "trainer/cuda/pinned_array.h"

namespace farstep {

class SnapshotStream {
 public:
  struct Source {
    std::string name;
    at::Tensor values;  // fp32, on the GPU
  };

  SnapshotStream();

  // Returns buffers for copies of the sources, with the values after the work in `stream`. The
  // memory is allocated at the first call and kept.
  NamedBuffers start(std::span<const Source> sources, cudaStream_t stream);
  // Makes all later work of `stream` wait for the copies. A recorded graph waits for the copies
  // that are under way when it runs.
  void hold_recordable(cudaStream_t stream) { copied_.hold_recordable(stream); }
  // Returns when the copies have arrived.
  void wait() { copied_.wait(); }

 private:
  GpuStream copies_;
  GpuEvent worked_, copied_;
  std::optional<PinnedArray<float>> memory_;
};

}  // namespace farstep
