// Matrix products into fp32: what a model spends its time on.
//
// bf16 factors are added up in fp32: by kernels/amx_product where the processor has its matrix
// instructions, else, as fp32 ones, by the MKL inside LibTorch. Uses the calling thread's number of
// threads, or one inside a parallel region. Thread-safe; equal calls with equal addresses modulo 64
// give equal bits.
#pragma once

#include <cstdint>

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/factor.h"

namespace farstep {

// c (m, n) from a (m, k) and b (k, n), all above 0.
void multiply(int64_t m, int64_t n, int64_t k, const Factor<float>& a, const Factor<float>& b,
              const Product& c);
void multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
              const Product& c);

// By one way whether it is the best or not, for tests and measurements; the first is for where
// has_amx(), the last is what is left where LibTorch comes without MKL.
void multiply_by_amx(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                     const Product& c);
template <typename T>
void multiply_by_mkl(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b,
                     const Product& c);
template <typename T>
void multiply_by_libtorch(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b,
                          const Product& c);

}  // namespace farstep
