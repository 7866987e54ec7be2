// The largest magnitude of a matrix, computed by the kernel that writes the matrix.
//
// For .cu files only. The result is a word in the GPU's memory with magnitude_bits (fp8.h), which
// order as the magnitudes do. A maximum does not depend on the order of the blocks.
#pragma once

#include "trainer/kernels/gpu/device_code.h"
#include "trainer/kernels/numbers/fp8.h"

namespace farstep {

__device__ inline uint32_t larger_of(uint32_t a, uint32_t b) {
  return a < b ? b : a;
}

// Raises `word` to the largest `own` of the block's threads; all of them must call it.
__device__ inline void raise_to_largest(uint32_t own, uint32_t* word) {
  const uint32_t largest = combine_over_block(own, larger_of);
  // Reading is cheaper than an atomic operation, and most blocks find a larger value.
  if (threadIdx.x == 0 && largest > *static_cast<volatile const uint32_t*>(word)) {
    atomicMax(word, largest);
  }
}

}  // namespace farstep
