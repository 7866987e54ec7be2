// The ways to compute a matrix product on a CPU, in order of preference.
//
// Each is correct on every processor with its instructions; the fastest one depends on the
// processor (docs/results/products.md). product_choice.h chooses. oneDNN is not among them.
// LibTorch hides its own copy, which returns bf16 products only rounded. A second copy would share
// C++ symbols with it and fail.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trainer/kernels/factor.h"
#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

enum class ProductWay : uint8_t {
  kAmx,         // tiles of bf16
  kAvx512Bf16,  // pairs of bf16
  kAvx512,      // fp32; bf16 factors are converted while they are packed
  kAvx2,        // fp32, in the same way
  kMkl,         // the MKL inside LibTorch
  kLibTorch,    // fp32; bf16 factors are converted first
};
constexpr int kProductWays = 6;
std::span<const std::string_view> enum_names(ProductWay);
std::string_view name_of(ProductWay way);

// Whether this build has the way for factors of T, and this process its instructions.
template <typename T>
bool can_multiply_by(ProductWay way);

// Computes c (m, n) from a (m, k) and b (k, n), all above 0; needs can_multiply_by(). Uses the
// calling thread's number of threads, or one thread in a parallel region. Thread-safe. Equal calls
// with equal addresses modulo 64 give equal bits.
template <typename T>
void multiply_by(ProductWay way, int64_t m, int64_t n, int64_t k, const Factor<T>& a,
                 const Factor<T>& b, const Product& c);

}  // namespace farstep
