// Products on a GPU, each by the fastest of the algorithms that LibTorch and cuBLASLt offer.
//
// A process measures them when it first meets sizes, layouts and types, which takes about 50 ms.
// All later products of that kind take the same algorithm. Two processes may choose differently,
// and so get different bits. LibTorch's own algorithm is taken without a measurement for small
// products, while a CUDA graph is recorded, and if LibTorch must be deterministic.
//
// All work goes to the calling thread's current stream of `device`, in bf16 with fp32 sums.
// Not thread-safe.
#pragma once

#include <ATen/ATen.h>
#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "trainer/kernels/factor.h"
#include "trainer/kernels/numbers/fp8.h"
#include "trainer/model/gpu_ops/gpu_library.h"

namespace farstep {

class GpuProducts {
 public:
  explicit GpuProducts(at::Device device) : device_(device) {}

  // Computes c (m, n) from a (m, k) and b (k, n).
  void multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                const GpuProduct& c);

  // Computes c (m, n) from a (m, k) and the transpose of b (n, k). At most one of them is E5M2; n
  // and k are multiples of 16. `fast`: intermediate sums have fewer bits than fp32. Needs compute
  // capability 8.9 or more.
  void multiply_fp8(int64_t m, int64_t n, int64_t k, const Fp8Factor& a, const Fp8Factor& b,
                    bool fast, const GpuProduct& c);

 private:
  // Returns memory that only this stream's products use.
  void* workspace(cudaStream_t stream);

  const at::Device device_;
  std::vector<std::pair<cudaStream_t, at::Tensor>> workspaces_;
};

}  // namespace farstep
