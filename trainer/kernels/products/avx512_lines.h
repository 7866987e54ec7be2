// Helpers for lines of 64 bytes: masks for a partial line, transposition, and storing results.
//
// For sources with AVX-512 code only, which include it between other headers. Thread-safe.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "trainer/kernels/products/panel_kernels.h"
#include "trainer/kernels/products/x86_code.h"

FARSTEP_AVX512_CODE

namespace farstep {

// Return a mask of the first `count` values of a line; `count` may be negative or beyond the line.
inline __mmask32 first_of_32(int64_t count) {
  return static_cast<__mmask32>((uint64_t{1} << std::clamp<int64_t>(count, 0, 32)) - 1);
}
inline __mmask16 first_of_16(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, 16)) - 1);
}

// Transposes a 16 x 16 matrix of 32-bit values: stores column i of `lines` at to(i). Three
// exchanges (of 32 bits, 64 bits and 128-bit quarters) replace 256 single moves.
template <typename To>
inline __attribute__((always_inline)) void store_transposed(__m512i (&lines)[16], const To& to) {
  __m512i pairs[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(lines[i], lines[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(lines[i], lines[i + 1]);
  }
  // Now quarter q of line i + j has column 4 q + j of lines i to i + 3.
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

// PanelKernels::store for panels of two lines a row.
inline void store_lines(PanelResult& result, int64_t end) {
  const auto low_mask = first_of_16(result.columns);
  const auto high_mask = first_of_16(result.columns - kLineFloats);
  for (end = std::min(end, result.rows); result.stored < end; ++result.stored) {
    const float* const made = result.from + result.stored * 2 * kLineFloats;
    float* const line = result.to + result.stored * result.stride;
    auto low = _mm512_load_ps(made), high = _mm512_load_ps(made + kLineFloats);
    if (result.past_cache) {
      _mm512_stream_ps(line, low);
      _mm512_stream_ps(line + kLineFloats, high);
      continue;
    }
    if (result.add) {
      low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(low_mask, line));
      high = _mm512_add_ps(high, _mm512_maskz_loadu_ps(high_mask, line + kLineFloats));
    }
    _mm512_mask_storeu_ps(line, low_mask, low);
    _mm512_mask_storeu_ps(line + kLineFloats, high_mask, high);
  }
}

}  // namespace farstep

FARSTEP_CODE_END
