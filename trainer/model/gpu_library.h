// What the fused model takes from LibTorch's libraries on a GPU: products by cuBLAS, and flash
// attention (Dao 2023). They come with libtorch_cuda, which open_device loads, by LibTorch's
// dispatcher: nothing of it is linked.
//
// All work goes to the calling thread's current stream of `device`, in bf16 with sums in fp32.
// Thread-safe as far as streams are.
#pragma once

#include <ATen/ATen.h>
#include <cuda_runtime_api.h>

#include "trainer/kernels/factor.h"
#include "trainer/kernels/fp8.h"
#include "trainer/model/attention_shape.h"

namespace farstep {

// Whether kernels run on `device`.
bool is_gpu(at::Device device);

// Makes `device` the calling thread's, for launches of kernels.
void use_gpu(at::Device device);

// The calling thread's current stream.
cudaStream_t current_stream(at::Device device);

// c (m, n) from a (m, k) and b (k, n), in fp32.
void gpu_multiply(at::Device device, int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                  const Factor<BF16>& b, const Product& c);

// Where a product goes whose rows follow one another without gaps: rounded, or exact.
struct GpuProduct {
  BF16* rounded = nullptr;
  float* exact = nullptr;
  bool add = false;  // to what is there; for exact ones
};

// The same, c (m, n) as it says.
void gpu_multiply(at::Device device, int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                  const Factor<BF16>& b, const GpuProduct& c);

// A matrix in FP8 whose rows follow one another, and by what its values are to be multiplied.
struct Fp8Factor {
  const uint8_t* codes = nullptr;
  const float* inverse_scale = nullptr;  // in the device's memory
  Fp8Format format = {};
};

// c (m, n) from a (m, k) and the transpose of b (n, k), of which one at most is E5M2; n and k are
// multiples of 16. `fast`: sums of fewer bits on the way to fp32. For GPUs of compute capability
// 8.9 and more.
void gpu_multiply_fp8(at::Device device, int64_t m, int64_t n, int64_t k, const Fp8Factor& a,
                      const Fp8Factor& b, bool fast, const GpuProduct& c);

// Whether flash attention takes heads of that size.
bool gpu_attends(int64_t head_size);

// mixed (rows, H D) from heads (rows, width): queries, keys, values; leaves what backward needs in
// log_sums (B, H, T).
void gpu_attend(at::Device device, const AttentionShape& shape, const BF16* heads, BF16* mixed,
                float* log_sums);

// The gradients in queries (rows, H, D), keys and values (rows, G, D), contiguous.
struct AttentionGradients {
  at::Tensor queries, keys, values;
};

// From those in mixed (rows, H D). The order of the additions is not fixed unless LibTorch was
// asked for deterministic algorithms.
AttentionGradients gpu_attend_backward(at::Device device, const AttentionShape& shape,
                                       const BF16* heads, const BF16* mixed, const float* log_sums,
                                       const BF16* mixed_gradient);

}  // namespace farstep
