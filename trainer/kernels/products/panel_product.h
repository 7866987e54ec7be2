// One thread's part of a matrix product. It packs blocks of both factors into panels and multiplies
// the panels of a block that stays in the cache by those that pass.
//
// Why not a library: MKL's bf16 products spend a quarter of their time packing, are slow on AMD,
// and store through the caches results that are read late. This code packs in the order of memory
// and prefetches. Where the processor multiplies fp32 only, it converts bf16 factors while packing.
// docs/results/products.md compares them.
#pragma once

#include <cstdint>

#include "trainer/kernels/factor.h"
#include "trainer/kernels/products/panel_kernels.h"

namespace farstep {

// Computes c (m, n) from a (m, k) and b (k, n), all above 0, on the calling thread. Each thread
// keeps about 4 MiB of scratch. The order of additions depends on k alone, so a product computed in
// parts, by rows or columns, has the same bits. The processor must have the kernels' instructions.
// Thread-safe.
template <typename T, typename P>
void multiply_panels(const PanelKernels<T, P>& kernels, int64_t m, int64_t n, int64_t k,
                     const Factor<T>& a, const Factor<T>& b, const Product& c);

}  // namespace farstep
