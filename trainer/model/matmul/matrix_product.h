// Matrix products with fp32 results, which take most of a step's time, by the way that this process
// chose.
//
// The way depends on the factors' type and the class of the product (product_choice.h). Uses the
// calling thread's number of threads, or one thread in a parallel region. Thread-safe. Equal calls
// with equal addresses modulo 64 give equal bits as long as the choice stays the same.
#pragma once

#include <cstdint>

#include "trainer/model/matmul/product_choice.h"

namespace farstep {

// Computes c (m, n) from a (m, k) and b (k, n), all above 0; adds up products of bf16 in fp32.
inline void multiply(int64_t m, int64_t n, int64_t k, const Factor<float>& a,
                     const Factor<float>& b, const Product& c) {
  const auto of = class_of(m, n, k, a.transposed, b.transposed);
  multiply_by(chosen_way<float>(of), m, n, k, a, b, c);
}
inline void multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                     const Product& c) {
  const auto of = class_of(m, n, k, a.transposed, b.transposed);
  multiply_by(chosen_way<BF16>(of), m, n, k, a, b, c);
}

}  // namespace farstep
