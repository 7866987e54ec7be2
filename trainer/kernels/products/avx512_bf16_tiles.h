// Products of packed panels (bf16_packing.h) by AVX-512's dot products of bf16 pairs.
//
// For sources with FARSTEP_AVX512_BF16_CODE only. Thread-safe.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "trainer/kernels/products/bf16_packing.h"

FARSTEP_AVX512_BF16_CODE

namespace farstep {

// 8 rows by 32 columns stay in registers: 16 sums hide the latency, and 10 loads serve 16 products.
constexpr int64_t kGroupRows = 8, kGroups = kPanelSize / kGroupRows;

// Both panels of a long product come from the second-level cache, 40 cache lines a unit for each
// group of rows. They are fetched this many units ahead; 1 and 4 were slower
// (docs/results/products.md).
constexpr int64_t kUnitsAhead = 2;

// Computes 8 rows of a product from `units`, or adds to them if not `begins`; calls meanwhile(unit)
// after each unit.
template <typename Meanwhile>
inline void multiply_group(const BF16* rows, int64_t stride, int64_t step, const BF16* columns,
                           int64_t units, bool begins, const Square& to,
                           const Meanwhile& meanwhile) {
  // Loops over rows are unrolled fully: otherwise GCC keeps the sums in memory.
  __m512 low[kGroupRows], high[kGroupRows];
  const auto mask = static_cast<__mmask16>(begins ? 0 : 0xffff);
#pragma GCC unroll 8
  for (int64_t row = 0; row < kGroupRows; ++row) {
    const float* const line = to.values + row * to.stride;
    low[row] = _mm512_maskz_loadu_ps(mask, line);
    high[row] = _mm512_maskz_loadu_ps(mask, line + kLineFloats);
  }
  for (int64_t unit = 0; unit < units; ++unit, rows += step, columns += kUnitSize) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < kHalfLines; ++i) {
      const BF16* const line = columns + i * kLineValues;
      __builtin_prefetch(line + kUnitsAhead * kUnitSize);
      __builtin_prefetch(line + kUnitsAhead * kUnitSize + kHalfValues);
      if (i % 2 == 0) __builtin_prefetch(rows + kUnitsAhead * step + i / 2 * stride);
      const auto left = _mm512_load_si512(line);
      const auto right = _mm512_load_si512(line + kHalfValues);
#pragma GCC unroll 8
      for (int64_t row = 0; row < kGroupRows; ++row) {
        int32_t pair;
        std::memcpy(&pair, rows + row * stride + 2 * i, sizeof(pair));
        const auto pairs = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
        low[row] = _mm512_dpbf16_ps(low[row], pairs, reinterpret_cast<__m512bh>(left));
        high[row] = _mm512_dpbf16_ps(high[row], pairs, reinterpret_cast<__m512bh>(right));
      }
    }
    meanwhile(unit);
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < kGroupRows; ++row) {
    float* const line = to.values + row * to.stride;
    _mm512_storeu_ps(line, low[row]);
    _mm512_storeu_ps(line + kLineFloats, high[row]);
  }
}

// Does the same for all 32 rows; calls meanwhile(i) 4 * `units` times.
template <typename Meanwhile>
inline void multiply_square(const RowPanel<BF16>& rows, const BF16* columns, int64_t units,
                            bool begins, const Square& to, const Meanwhile& meanwhile) {
  for (int64_t group = 0; group < kGroups; ++group) {
    const int64_t row = group * kGroupRows;
    multiply_group(rows.values + row * rows.stride, rows.stride, rows.step, columns, units, begins,
                   {to.values + row * to.stride, to.stride},
                   [&](int64_t unit) { meanwhile(group * units + unit); });
  }
}

// How attention multiplies with bf16 pairs (a parameter of attend_by()).
struct PairSquares {
  struct Scope {};

  // Replace `to` by the product of two panels of `units`, or add the product to it.
  static void multiply(const RowPanel<BF16>& rows, const BF16* columns, int64_t units,
                       const Square& to) {
    multiply_square(rows, columns, units, /*begins=*/true, to, [](int64_t) {});
  }
  static void multiply_add(const RowPanel<BF16>& rows, const BF16* columns, int64_t units,
                           const Square& to) {
    multiply_square(rows, columns, units, /*begins=*/false, to, [](int64_t) {});
  }
};

}  // namespace farstep

FARSTEP_CODE_END
