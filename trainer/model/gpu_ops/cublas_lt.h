// Products by cuBLASLt, whose algorithms a caller can list and choose from. The library comes with
// LibTorch's CUDA libraries and is loaded on first use; nothing is linked.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <vector>

namespace farstep {

// How a matrix lies in memory: rows of that stride, or columns if it is transposed.
struct LtMatrix {
  cudaDataType_t type = CUDA_R_16BF;
  int64_t stride = 0;
  bool transposed = false;
  uint32_t alignment = 0;  // of its address in bytes; a power of two

  auto operator<=>(const LtMatrix&) const = default;
};

// What is the same in all calls of a product c (m, n) = a (m, k) b (k, n); c has contiguous rows.
struct LtProduct {
  int64_t m = 0, n = 0, k = 0;
  LtMatrix a, b, c;
  bool fast = false;  // FP8 only: intermediate sums have fewer bits than fp32

  auto operator<=>(const LtProduct&) const = default;
};

// The arrays of a call, in the GPU's memory. Scales are those of FP8 factors, else null.
struct LtArrays {
  const void *a = nullptr, *b = nullptr;
  const float *a_scale = nullptr, *b_scale = nullptr;
  void* c = nullptr;
  bool add = false;  // to the present values of c
};

// cuBLASLt on one GPU. Thread-safe.
class CublasLt {
 public:
  using Algorithm = cublasLtMatmulAlgo_t;

  // Returns that of the calling thread's current GPU; it is never destroyed. Throws InternalError
  // if the library cannot be loaded.
  static const CublasLt& of_current_gpu();

  // Returns algorithms for the product, the supposedly fastest first. Sums are in fp32.
  std::vector<Algorithm> algorithms(const LtProduct& product, const LtArrays& arrays,
                                    std::size_t workspace_bytes) const;

  // Launches the product; returns whether cuBLASLt accepts it.
  bool multiply(const LtProduct& product, const Algorithm& algorithm, const LtArrays& arrays,
                void* workspace, std::size_t workspace_bytes, cudaStream_t stream) const;

 private:
  CublasLt();

  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace farstep
