// The factors of a product as AMX tiles take them.
//
// A panel is 32 rows of the first factor, or 32 columns of the second, over some of the inner
// values: for each 32 of those a pair of tiles, one after the other. Values beyond the factor are
// zeros.
//
// For sources with FARSTEP_AMX_CODE only. Pure functions; thread-safe.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "trainer/kernels/amx.h"
#include "trainer/kernels/bf16.h"

FARSTEP_AMX_CODE

namespace farstep::amx {

constexpr int64_t kTileLines = 16, kLineBytes = 64;
constexpr int64_t kLineValues = kLineBytes / sizeof(BF16);
constexpr int64_t kTileValues = kTileLines * kLineValues;
constexpr int64_t kPairValues = 2 * kTileValues;
constexpr int64_t kPanelSize = 2 * kTileLines;  // rows, or columns

constexpr int64_t divided_up(int64_t x, int64_t by) {
  return (x + by - 1) / by;
}

// The first `count` values of a line, all or none where it is beyond the line.
inline __mmask32 first_of_32(int64_t count) {
  return static_cast<__mmask32>((uint64_t{1} << std::clamp<int64_t>(count, 0, 32)) - 1);
}
inline __mmask16 first_of_16(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, 16)) - 1);
}

// A rectangle of a matrix, as it lies in memory: up to 32 rows of up to 32 values.
struct Rectangle {
  const BF16* values = nullptr;
  int64_t stride = 0, rows = 0, columns = 0;

  __m512i row(int64_t i) const {
    return _mm512_maskz_loadu_epi16(i < rows ? first_of_32(columns) : __mmask32{0},
                                    values + i * stride);
  }
  // 16 values from `first` on.
  __m256i half_row(int64_t i, int64_t first) const {
    return _mm256_maskz_loadu_epi16(i < rows ? first_of_16(columns - first) : __mmask16{0},
                                    values + i * stride + first);
  }
};

// Stores at to(i) the 32-bit values i of all lines.
template <typename To>
inline __attribute__((always_inline)) void store_transposed(__m512i (&lines)[kTileLines],
                                                            const To& to) {
  __m512i pairs[kTileLines];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(lines[i], lines[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(lines[i], lines[i + 1]);
  }
  // Values 4 q + j of lines i to i + 3 are quarter q of line i + j, then.
  for (int i = 0; i < 16; i += 4) {
    lines[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    lines[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    lines[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    lines[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  constexpr int kEvenQuarters = 0x88, kOddQuarters = 0xdd;
  for (int j = 0; j < 4; ++j) {
    const auto even_low = _mm512_shuffle_i32x4(lines[j], lines[j + 4], kEvenQuarters);
    const auto odd_low = _mm512_shuffle_i32x4(lines[j], lines[j + 4], kOddQuarters);
    const auto even_high = _mm512_shuffle_i32x4(lines[j + 8], lines[j + 12], kEvenQuarters);
    const auto odd_high = _mm512_shuffle_i32x4(lines[j + 8], lines[j + 12], kOddQuarters);
    _mm512_store_si512(to(j), _mm512_shuffle_i32x4(even_low, even_high, kEvenQuarters));
    _mm512_store_si512(to(j + 4), _mm512_shuffle_i32x4(odd_low, odd_high, kEvenQuarters));
    _mm512_store_si512(to(j + 8), _mm512_shuffle_i32x4(even_low, even_high, kOddQuarters));
    _mm512_store_si512(to(j + 12), _mm512_shuffle_i32x4(odd_low, odd_high, kOddQuarters));
  }
}

// A pair of tiles of the first factor: its rows as they are.
inline void pack_rows(const Rectangle& from, BF16* to) {
  for (int64_t i = 0; i < kPanelSize; ++i) {
    _mm512_store_si512(to + i * kLineValues, from.row(i));
  }
}

// The same where the first factor lies transposed: columns become rows.
inline void pack_rows_transposed(const Rectangle& from, BF16* to) {
  __m512i low[kTileLines], high[kTileLines];
  for (int64_t i = 0; i < kTileLines; ++i) {
    const auto first = from.row(2 * i), second = from.row(2 * i + 1);
    // Of each 8 columns the first four, and the others; two rows' values side by side.
    low[i] = _mm512_unpacklo_epi16(first, second);
    high[i] = _mm512_unpackhi_epi16(first, second);
  }
  const auto line = [to](int64_t i) { return to + (i / 4 * 8 + i % 4) * kLineValues; };
  store_transposed(low, line);
  store_transposed(high, [line](int64_t i) { return line(i) + 4 * kLineValues; });
}

// A pair of tiles of the second factor: two rows' values side by side.
inline void pack_columns(const Rectangle& from, BF16* to) {
  for (int64_t half = 0; half < 2; ++half) {
    for (int64_t i = 0; i < kTileLines; ++i) {
      const auto first = _mm512_cvtepu16_epi32(from.half_row(2 * i, half * kTileLines));
      const auto second = _mm512_cvtepu16_epi32(from.half_row(2 * i + 1, half * kTileLines));
      _mm512_store_si512(to + half * kTileValues + i * kLineValues,
                         _mm512_or_si512(first, _mm512_slli_epi32(second, 16)));
    }
  }
}

// The same where the second factor lies transposed: rows become columns.
inline void pack_columns_transposed(const Rectangle& from, BF16* to) {
  for (int64_t half = 0; half < 2; ++half) {
    __m512i lines[kTileLines];
    for (int64_t i = 0; i < kTileLines; ++i) lines[i] = from.row(half * kTileLines + i);
    BF16* const tile = to + half * kTileValues;
    store_transposed(lines, [tile](int64_t i) { return tile + i * kLineValues; });
  }
}

}  // namespace farstep::amx

FARSTEP_AMX_CODE_END
