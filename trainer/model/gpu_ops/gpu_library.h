// LibTorch's libraries on a GPU, as the fused model uses them: products by cuBLAS, attention by
// cuDNN or FlashAttention (Dao 2023). They come with libtorch_cuda, which open_device() loads, and
// are called through LibTorch's dispatcher; nothing is linked.
//
// All work goes to the calling thread's current stream of `device`, in bf16 with fp32 sums. As
// thread-safe as streams are.
#pragma once

#include <ATen/ATen.h>
#include <cuda_runtime_api.h>

#include <functional>

#include "trainer/kernels/factor.h"
#include "trainer/kernels/numbers/fp8.h"
#include "trainer/model/llama/attention_shape.h"

namespace farstep {

// Whether kernels can run on `device`.
bool is_gpu(at::Device device);

// Makes `device` the calling thread's current one, for launches of kernels.
void use_gpu(at::Device device);

// Returns the total memory of the GPU in bytes.
int64_t gpu_memory_bytes(at::Device device);

// Returns the calling thread's current stream.
cudaStream_t current_stream(at::Device device);

// A second stream of a GPU, which does not synchronise with others by itself.
class SideStream {
 public:
  explicit SideStream(at::Device device);
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  cudaStream_t get() const;
  // Calls `work` with this stream as the calling thread's current one.
  void run(const std::function<void()>& work) const;

 private:
  at::Stream stream_;
};

// The result of a product, with contiguous rows, rounded or exact.
struct GpuProduct {
  BF16* rounded = nullptr;
  float* exact = nullptr;
  bool add = false;  // add to the present values; only for exact ones
};

// Computes c (m, n) from a (m, k) and b (k, n).
void gpu_multiply(at::Device device, int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                  const Factor<BF16>& b, const GpuProduct& c);

// An FP8 matrix with contiguous rows, and the factor from its codes to its values.
struct Fp8Factor {
  const uint8_t* codes = nullptr;
  const float* inverse_scale = nullptr;  // in the device's memory
  Fp8Format format = {};
};

// Computes c (m, n) from a (m, k) and the transpose of b (n, k). At most one of them is E5M2; n and
// k are multiples of 16. `fast`: intermediate sums have fewer bits than fp32. Needs compute
// capability 8.9 or more.
void gpu_multiply_fp8(at::Device device, int64_t m, int64_t n, int64_t k, const Fp8Factor& a,
                      const Fp8Factor& b, bool fast, const GpuProduct& c);

// Whether attention supports heads of that size.
bool gpu_attends(int64_t head_size);

// The results of attention, in memory of LibTorch.
struct AttentionResult {
  at::Tensor mixed;     // (rows, H D), contiguous
  at::Tensor log_sums;  // (B, H, T), for backward
  bool by_cudnn = false;
};

// Computes attention from heads (rows, width): queries, keys, values. Uses cuDNN if LibTorch
// prefers it (data-centre GPUs since Hopper), else FlashAttention, and always FlashAttention if
// LibTorch must be deterministic.
AttentionResult gpu_attend(at::Device device, const AttentionShape& shape, const BF16* heads);

// The gradients in queries (rows, H, D), keys and values (rows, G, D), contiguous.
struct AttentionGradients {
  at::Tensor queries, keys, values;
};

// Computes them from the gradient in mixed (rows, H D), with the library that made `result`. The
// order of additions is fixed only if LibTorch must be deterministic.
AttentionGradients gpu_attend_backward(at::Device device, const AttentionShape& shape,
                                       const BF16* heads, const AttentionResult& result,
                                       const BF16* mixed_gradient);

}  // namespace farstep
