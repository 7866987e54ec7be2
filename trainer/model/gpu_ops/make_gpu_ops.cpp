#include "trainer/model/gpu_ops/make_gpu_ops.h"

#include "trainer/cuda/cuda_check.h"
#include "trainer/model/fused/fp8_layers.h"
#include "trainer/model/gpu_ops/fp8_gpu_ops.h"
#include "trainer/model/gpu_ops/gpu_library.h"

namespace farstep {

std::unique_ptr<FusedOps<BF16>> make_gpu_ops(const LlamaConfig& shape, at::Device device,
                                             bool fp8) {
  int major = 0, minor = 0;
  FARSTEP_CUDA_CHECK(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index()));
  FARSTEP_CUDA_CHECK(
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index()));
  if (fp8) require_fp8(major, minor);
  // Ampere is the first with bf16; autograd's way serves the others.
  if (major < 8 || !gpu_attends(shape.head_size())) return nullptr;
  if (fp8) return std::make_unique<Fp8GpuOps>(device);
  return std::make_unique<GpuOps>(device);
}

}  // namespace farstep
