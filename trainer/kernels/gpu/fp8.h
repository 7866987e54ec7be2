// Matrices of bf16 to FP8 on a GPU, as trainer/kernels/fp8.h has it, together with their
// transposes: a GPU's products want both factors along the sum.
//
// Gives the stream its work and returns what CUDA says of that; nothing waits for the largest
// magnitude, which the GPU alone sees.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/kernels/fp8.h"

namespace farstep {

// Of how many parts of a matrix the largest magnitudes are found first, at most.
constexpr int64_t kFp8Parts = 256;

// Where a matrix goes; the codes that are null are not wanted.
struct Fp8Matrix {
  uint8_t* codes = nullptr;        // (rows, columns)
  uint8_t* transposed = nullptr;   // (columns, rows)
  float* inverse_scale = nullptr;  // by what values are to be multiplied
};

// x (rows, columns), both multiples of 16, all arrays aligned to 16 bytes; works in `parts`
// (kFp8Parts).
[[nodiscard]] cudaError_t launch_to_fp8(Fp8Format format, const BF16* x, int64_t rows,
                                        int64_t columns, uint32_t* parts, const Fp8Matrix& to,
                                        cudaStream_t stream);

}  // namespace farstep
