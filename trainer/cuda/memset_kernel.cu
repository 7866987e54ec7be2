#include "trainer/cuda/memset_kernel.h"

#include <array>
#include <cstdint>

namespace farstep {

namespace {

constexpr unsigned kMostBytes = 32;  // a warp writes them

// Each thread writes one byte of the elements, which all have this value.
__global__ void __launch_bounds__(kMostBytes)
    write_bytes(uint8_t* bytes, unsigned count, uint32_t value, unsigned element_bytes) {
  if (threadIdx.x >= count) return;
  bytes[threadIdx.x] = static_cast<uint8_t>(value >> 8 * (threadIdx.x % element_bytes));
}

}  // namespace

bool fits_memset_kernel(const cudaMemsetParams& memset) {
  return memset.height == 1 && memset.width * memset.elementSize <= kMostBytes;
}

cudaError_t add_memset_kernel(cudaGraph_t graph, const cudaGraphNode_t* before,
                              std::size_t num_before, const cudaMemsetParams& memset,
                              cudaGraphNode_t* added) {
  auto* bytes = static_cast<uint8_t*>(memset.dst);
  auto count = static_cast<unsigned>(memset.width * memset.elementSize);
  uint32_t value = memset.value;
  unsigned element_bytes = memset.elementSize;
  std::array<void*, 4> arguments{&bytes, &count, &value, &element_bytes};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(write_bytes);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(kMostBytes);
  kernel.kernelParams = arguments.data();
  return cudaGraphAddKernelNode(added, graph, before, num_before, &kernel);
}

}  // namespace farstep
