// Matrix products into fp32: what a model spends its time on.
//
// By MKL inside LibTorch, which takes bf16 factors and adds in fp32, with the processor's matrix
// instructions where it has them. Uses the calling thread's number of threads, or one inside a
// parallel region. Thread-safe; equal calls with equal addresses modulo 64 give equal bits.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/kernels/bf16.h"
#include "trainer/model/factor.h"

namespace farstep {

// c (m, n) from a (m, k) and b (k, n), all above 0.
void multiply(int64_t m, int64_t n, int64_t k, const Factor<float>& a, const Factor<float>& b,
              const Product& c);
void multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
              const Product& c);

// The same for a result that is large and not read soon: it is made in `scratch`, as many rows at
// once as fit, at least one, and goes from there to memory, past the caches.
template <typename T>
void multiply_past_cache(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b,
                         const Product& c, std::span<float> scratch);

// What multiply does by LibTorch's own operations, where LibTorch comes without MKL.
void multiply_without_mkl(int64_t m, int64_t n, int64_t k, const Factor<float>& a,
                          const Factor<float>& b, const Product& c);
void multiply_without_mkl(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a,
                          const Factor<BF16>& b, const Product& c);

}  // namespace farstep
