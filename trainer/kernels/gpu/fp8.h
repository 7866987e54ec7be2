// Converts bf16 matrices to FP8 (trainer/kernels/numbers/fp8.h) on a GPU, and transposes them,
// because a GPU's FP8 products need both factors with the inner index contiguous.
//
// A launch returns CUDA's error code. The largest magnitude stays in the GPU's memory, so the host
// does not wait for it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/numbers/fp8.h"

namespace farstep {

// Raises the word `largest` to the magnitude_bits of the largest of x, if that is greater. `size`
// is a multiple of 8 and x is aligned to 16 bytes. For matrices whose own kernel does not compute
// it.
[[nodiscard]] cudaError_t launch_largest_magnitude(const BF16* x, int64_t size, uint32_t* largest,
                                                   cudaStream_t stream);

// The results of a conversion; a null pointer leaves one out.
struct Fp8Matrix {
  uint8_t* codes = nullptr;        // (rows, columns)
  uint8_t* transposed = nullptr;   // (columns, rows)
  float* inverse_scale = nullptr;  // the factor from codes back to values
};

// Converts x (rows, columns). Both are multiples of 16 and all arrays are aligned to 16 bytes.
// `largest` has the magnitude_bits of its largest value.
[[nodiscard]] cudaError_t launch_to_fp8(Fp8Format format, const BF16* x, int64_t rows,
                                        int64_t columns, const uint32_t* largest,
                                        const Fp8Matrix& to, cudaStream_t stream);

}  // namespace farstep
