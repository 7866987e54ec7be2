#include "trainer/model/make_gpu_ops.h"

#include "trainer/cuda/cuda_check.h"
#include "trainer/model/gpu_library.h"
#include "trainer/model/gpu_ops.h"

namespace farstep {

std::unique_ptr<FusedOps<BF16>> make_gpu_ops(const LlamaConfig& shape, at::Device device) {
  int generation = 0;
  FARSTEP_CUDA_CHECK(
      cudaDeviceGetAttribute(&generation, cudaDevAttrComputeCapabilityMajor, device.index()));
  if (generation < 8 || !gpu_attends(shape.head_size())) return nullptr;
  return std::make_unique<GpuOps>(device);
}

}  // namespace farstep
