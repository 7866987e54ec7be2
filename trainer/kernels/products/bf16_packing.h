// Packs bf16 factors into units, in the layout of AMX tiles and of products of bf16 pairs. A unit
// of the first factor is 32 rows of 32 values. A unit of the second is two halves of 16 columns;
// line i of a half has rows 2 i and 2 i + 1 interleaved.
//
// For sources with AVX-512 code only. Pure functions; thread-safe.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "trainer/kernels/numbers/bf16.h"
#include "trainer/kernels/products/avx512_lines.h"
#include "trainer/kernels/products/panel_kernels.h"

FARSTEP_AVX512_CODE

namespace farstep {

constexpr int64_t kPanelSize = 32;   // rows or columns of a panel
constexpr int64_t kHalfLines = 16;   // lines of half a unit
constexpr int64_t kLineValues = 32;  // bf16 values in 64 bytes
constexpr int64_t kHalfValues = kHalfLines * kLineValues;
constexpr int64_t kUnitSize = 2 * kHalfValues;  // values of a unit
static_assert(kLineValues == kUnitValues);

constexpr int64_t divided_up(int64_t x, int64_t by) {
  return (x + by - 1) / by;
}

// Returns line i of the rectangle, with zeros beyond its end.
inline __m512i line_of(const Rectangle<BF16>& from, int64_t i) {
  return _mm512_maskz_loadu_epi16(i < from.lines ? first_of_32(from.columns) : __mmask32{0},
                                  from.values + i * from.stride);
}
// Returns 16 values of line i from `first` on.
inline __m256i half_line_of(const Rectangle<BF16>& from, int64_t i, int64_t first) {
  return _mm256_maskz_loadu_epi16(i < from.lines ? first_of_16(from.columns - first) : __mmask16{0},
                                  from.values + i * from.stride + first);
}

// Packs a unit of the first factor: copies its rows.
inline void pack_rows(const Rectangle<BF16>& from, BF16* to) {
  for (int64_t i = 0; i < kPanelSize; ++i) {
    _mm512_store_si512(to + i * kLineValues, line_of(from, i));
  }
}

// Does the same for a transposed first factor: columns become rows.
inline void pack_rows_transposed(const Rectangle<BF16>& from, BF16* to) {
  __m512i low[kHalfLines], high[kHalfLines];
  for (int64_t i = 0; i < kHalfLines; ++i) {
    const auto first = line_of(from, 2 * i), second = line_of(from, 2 * i + 1);
    // Interleaves two rows; `low` has the first four of each 8 columns, `high` the others.
    low[i] = _mm512_unpacklo_epi16(first, second);
    high[i] = _mm512_unpackhi_epi16(first, second);
  }
  const auto line = [to](int64_t i) { return to + (i / 4 * 8 + i % 4) * kLineValues; };
  store_transposed(low, line);
  store_transposed(high, [line](int64_t i) { return line(i) + 4 * kLineValues; });
}

// Packs a unit of the second factor: interleaves the values of two rows.
inline void pack_columns(const Rectangle<BF16>& from, BF16* to) {
  for (int64_t half = 0; half < 2; ++half) {
    for (int64_t i = 0; i < kHalfLines; ++i) {
      const auto first = _mm512_cvtepu16_epi32(half_line_of(from, 2 * i, half * kHalfLines));
      const auto second = _mm512_cvtepu16_epi32(half_line_of(from, 2 * i + 1, half * kHalfLines));
      _mm512_store_si512(to + half * kHalfValues + i * kLineValues,
                         _mm512_or_si512(first, _mm512_slli_epi32(second, 16)));
    }
  }
}

// Does the same for a transposed second factor: rows become columns.
inline void pack_columns_transposed(const Rectangle<BF16>& from, BF16* to) {
  for (int64_t half = 0; half < 2; ++half) {
    __m512i lines[kHalfLines];
    for (int64_t i = 0; i < kHalfLines; ++i) lines[i] = line_of(from, half * kHalfLines + i);
    BF16* const unit = to + half * kHalfValues;
    store_transposed(lines, [unit](int64_t i) { return unit + i * kLineValues; });
  }
}

inline RowPanel<BF16> packed_rows(const BF16* values) {
  return {values, kUnitValues, kUnitSize};
}

// The 32 x 32 result of two panels.
struct Square {
  float* values = nullptr;
  int64_t stride = kPanelSize;  // between rows
};

// The functions of PanelKernels.
inline void pack_bf16_rows(const Rectangle<BF16>& from, bool transposed, BF16* to) {
  transposed ? pack_rows_transposed(from, to) : pack_rows(from, to);
}
inline void pack_bf16_columns(const Rectangle<BF16>& from, bool transposed, BF16* to) {
  transposed ? pack_columns_transposed(from, to) : pack_columns(from, to);
}

}  // namespace farstep

FARSTEP_CODE_END
