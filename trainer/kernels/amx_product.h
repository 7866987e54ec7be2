// Products of bf16 matrices into fp32 by Intel's matrix instructions.
//
// Why not a library's: MKL's spend a quarter of their time on packing factors, and store through
// the caches what nothing reads soon. These pack in the order of memory, fetch what comes and store
// what is done while the matrix unit works; docs/results.md compares them.
#pragma once

#include <cstdint>

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/factor.h"

namespace farstep {

// c (m, n) from a (m, k) and b (k, n), all above 0, on the calling thread, which keeps some 4 MiB
// of scratch. Each value is added up in an order that depends on k alone, so that a product made in
// parts, by rows or by columns, has the same bits. Only where has_amx(). Thread-safe.
void amx_multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                  const Product& c);

// Multiplies tiles that stay in registers, `count` times, a multiple of 4: what the matrix unit can
// do at most, to measure against.
void amx_tile_products(int64_t count);
constexpr double kAmxTileOperations = 2.0 * 16 * 16 * 32;

}  // namespace farstep
