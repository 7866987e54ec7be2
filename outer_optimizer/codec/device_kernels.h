// The kernels of device_codec.h, by format.
//
// Each function launches one kernel on `stream` and returns CUDA's error code; for n = 0 it
// launches nothing. Blocks have `block` values; formats of single values ignore it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "outer_optimizer/codec/block_formats.h"
#include "outer_optimizer/codec/float_formats.h"

namespace farstep::outer_optimizer {

template <typename Format>
struct DeviceKernels {
  // `residual_out` is null without feedback, and may be `values`.
  static cudaError_t encode(const float* values, int64_t n, int64_t block, std::byte* bytes,
                            float* residual_out, cudaStream_t stream);
  static cudaError_t decode(const std::byte* bytes, int64_t n, int64_t block, float* values,
                            cudaStream_t stream);
  static cudaError_t add_decoded(const std::byte* bytes, int64_t n, int64_t block,
                                 float coefficient, float* sum, cudaStream_t stream);
};

extern template struct DeviceKernels<Fp16Format>;
extern template struct DeviceKernels<Bf16Format>;
extern template struct DeviceKernels<Int8Format>;
extern template struct DeviceKernels<Int4Format>;
extern template struct DeviceKernels<Int2Format>;

}  // namespace farstep::outer_optimizer
