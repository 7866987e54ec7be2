#include "trainer/kernels/products/head_attention.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainer/base/error.h"
#include "trainer/base/processor/instruction_set.h"
#include "trainer/kernels/products/x86_code.h"

#if FARSTEP_X86_CODE

#include "trainer/kernels/numbers/largest.h"
#include "trainer/kernels/products/amx_tiles.h"
#include "trainer/kernels/products/avx512_bf16_tiles.h"

FARSTEP_AMX_CODE

namespace farstep {

namespace {

constexpr int64_t kSquareValues = kPanelSize * kPanelSize;
constexpr float kLog2E = std::numbers::log2e_v<float>;

constexpr int64_t panels_of(int64_t size) {
  return divided_up(size, kPanelSize);
}

// Attention by squares of 32 x 32, the size of a panel. Scores of a square stay in the first-level
// cache. It takes half the time of attention by whole products (docs/results/products.md).
struct Panels {
  explicit Panels(const HeadShape& head)
      : length(panels_of(head.length)), size(panels_of(head.size)) {}
  int64_t all() const { return length * size; }
  int64_t place(int64_t p, int64_t q) const { return (p * size + q) * kUnitSize; }
  // Distance between two queries' rows. It is one cache line more than their values take, so that
  // rows do not compete for one set of the cache.
  template <typename T>
  int64_t row() const {
    return length * kPanelSize + kLineBytes / int64_t{sizeof(T)};
  }

  int64_t length, size;
};

// Returns 2^x within a relative error of 2e-7: an exact power for the integer part, a polynomial
// for the rest.
inline __m512 power_of_2(__m512 x) {
  const auto whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const auto rest = _mm512_sub_ps(x, whole);
  auto sum = _mm512_set1_ps(1.32763747e-3F);
  sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(9.67551488e-3F));
  sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(5.55071346e-2F));
  sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(2.40221202e-1F));
  sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(6.93146944e-1F));
  sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(1.00000012F));
  return _mm512_scalef_ps(sum, whole);
}

// Rounds and stores 32 values.
inline void store_rounded(__m512 low, __m512 high, BF16* to) {
  const auto both = _mm512_cvtne2ps_pbh(high, low);
  _mm512_store_si512(to, reinterpret_cast<const __m512i&>(both));
}

// Calls task(p, q, square) for the 32 x 32 squares of a matrix (T, D).
template <typename Task>
inline void for_squares(const HeadShape& head, const BF16* matrix, int64_t stride,
                        const Task& task) {
  const Panels panels(head);
  for (int64_t p = 0; p < panels.length; ++p) {
    for (int64_t q = 0; q < panels.size; ++q) {
      const int64_t row = p * kPanelSize, column = q * kPanelSize;
      task(p, q,
           Rectangle<BF16>{matrix + row * stride + column, stride,
                           std::min(kPanelSize, head.length - row),
                           std::min(kPanelSize, head.size - column)});
    }
  }
}

struct RowSums {
  float log_sum, inverse;
};

// Writes exponentials (columns, a multiple of 32) of a row of scores: e^(scale (score - largest))
// for the first `seen`, 0 for the others. They are divided by their sum only after the product with
// the values, on fewer numbers.
inline RowSums exponentials_of(const float* scores, int64_t seen, int64_t columns, float scale,
                               BF16* exponentials) {
  const float largest = largest_of(scores, seen);
  const auto factor = _mm512_set1_ps(scale * kLog2E);
  const auto shift = _mm512_mul_ps(_mm512_set1_ps(largest), factor);
  auto sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < columns; i += 32) {
    const auto at = [&](int64_t first) {
      const auto power = _mm512_fmsub_ps(_mm512_loadu_ps(scores + first), factor, shift);
      return _mm512_maskz_mov_ps(first_of_16(seen - first), power_of_2(power));
    };
    const auto low = at(i), high = at(i + 16);
    sum = _mm512_add_ps(sum, _mm512_add_ps(low, high));
    store_rounded(low, high, exponentials + i);
  }
  const float total = _mm512_reduce_add_ps(sum);
  return {largest * scale + std::log(total), 1.0F / total};
}

// Multiplies `columns` values by `factor`, rounds and stores them.
inline void store_scaled(const float* from, float factor, int64_t columns, BF16* to) {
  const auto by = _mm512_set1_ps(factor);
  const auto both = _mm512_cvtne2ps_pbh(_mm512_mul_ps(_mm512_load_ps(from + 16), by),
                                        _mm512_mul_ps(_mm512_load_ps(from), by));
  _mm512_mask_storeu_epi16(to, first_of_32(columns), reinterpret_cast<const __m512i&>(both));
}

// Stores rows (count, D) in a matrix whose rows are `stride` apart, or adds them to it.
inline void store_gradient(const HeadShape& head, const float* rows, int64_t count, bool adds,
                           float* to) {
  const int64_t width = panels_of(head.size) * kPanelSize;
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t i = 0; i < head.size; i += 16) {
      const auto mask = first_of_16(head.size - i);
      float* const line = to + row * head.stride + i;
      auto values = _mm512_load_ps(rows + row * width + i);
      if (adds) values = _mm512_add_ps(values, _mm512_maskz_loadu_ps(mask, line));
      _mm512_mask_storeu_ps(line, mask, values);
    }
  }
}

// For the queries of a panel: the binary logarithms of their sums, and the products of outputs and
// output gradients.
struct QueryFigures {
  const float *log_sums, *row_products;
};

// Computes one square of probabilities and of score gradients, with a row for each key and a column
// for each query. The gradient of a score is p (dp - row product) scale.
inline void differentiate_square(const float* scores, const float* d_probabilities,
                                 const QueryFigures& queries, float scale, bool is_diagonal,
                                 BF16* probabilities, BF16* d_scores) {
  const auto factor = _mm512_set1_ps(scale * kLog2E), scale_of_all = _mm512_set1_ps(scale);
  const __m512 log_sums[] = {_mm512_load_ps(queries.log_sums),
                             _mm512_load_ps(queries.log_sums + 16)};
  const __m512 row_products[] = {_mm512_load_ps(queries.row_products),
                                 _mm512_load_ps(queries.row_products + 16)};
  for (int64_t key = 0; key < kPanelSize; ++key) {
    __m512 p[2], d[2];
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t first = key * kPanelSize + half * 16;
      p[half] = power_of_2(_mm512_fmsub_ps(_mm512_load_ps(scores + first), factor, log_sums[half]));
      // Causal mask: queries before the key do not see it.
      if (is_diagonal) {
        p[half] =
            _mm512_maskz_mov_ps(static_cast<__mmask16>(~first_of_16(key - half * 16)), p[half]);
      }
      const auto beyond =
          _mm512_sub_ps(_mm512_load_ps(d_probabilities + first), row_products[half]);
      d[half] = _mm512_mul_ps(_mm512_mul_ps(p[half], beyond), scale_of_all);
    }
    store_rounded(p[0], p[1], probabilities + key * kLineValues);
    store_rounded(d[0], d[1], d_scores + key * kLineValues);
  }
}

// Writes to products (T) the dot products of corresponding rows of two matrices (T, D); 0 for the
// rows that pad the last panel.
inline void multiply_rows(const HeadShape& head, const BF16* x, const BF16* y, float* products) {
  std::fill_n(products, panels_of(head.length) * kPanelSize, 0.0F);
  for (int64_t row = 0; row < head.length; ++row) {
    auto sum = _mm512_setzero_ps();
    for (int64_t i = 0; i < head.size; i += 16) {
      const auto mask = first_of_16(head.size - i);
      const auto at = [&](const BF16* values) {
        const auto bits = _mm256_maskz_loadu_epi16(mask, values + row * head.mixed_stride + i);
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
      };
      sum = _mm512_fmadd_ps(at(x), at(y), sum);
    }
    products[row] = _mm512_reduce_add_ps(sum);
  }
}

// Packs each matrix in the layouts that the five products of a square need. Once for a head,
// because every square of a row or column uses them again.
void pack_backward(const HeadShape& head, const HeadBackward<BF16>& backward,
                   const HeadScratch& scratch) {
  const Panels panels(head);
  for_squares(head, backward.query, head.stride,
              [&](int64_t p, int64_t q, const Rectangle<BF16>& from) {
                pack_columns_transposed(from, scratch.queries + panels.place(p, q));
                pack_columns(from, scratch.query_columns + panels.place(p, q));
              });
  for_squares(head, backward.d_mixed, head.mixed_stride,
              [&](int64_t p, int64_t q, const Rectangle<BF16>& from) {
                pack_columns_transposed(from, scratch.d_mixed + panels.place(p, q));
                pack_columns(from, scratch.d_mixed_columns + panels.place(p, q));
              });
  for_squares(head, backward.key, head.stride,
              [&](int64_t p, int64_t q, const Rectangle<BF16>& from) {
                pack_rows(from, scratch.key_rows + panels.place(p, q));
                pack_columns(from, scratch.key_columns + panels.place(p, q));
              });
  for_squares(head, backward.value, head.stride,
              [&](int64_t p, int64_t q, const Rectangle<BF16>& from) {
                pack_rows(from, scratch.value_rows + panels.place(p, q));
              });
}

// Adds the gradients that a panel of queries and a panel of keys contribute.
template <typename Squares>
void add_square_gradients(const HeadShape& head, int64_t key, int64_t query,
                          const HeadScratch& scratch) {
  const Panels panels(head);
  const int64_t width = panels.size * kPanelSize, first_query = query * kPanelSize;
  float *const scores = scratch.product, *const d_probabilities = scores + kSquareValues;
  BF16* const probabilities = scratch.squares;
  BF16* const d_scores = probabilities + kSquareValues;
  BF16* const d_score_rows = d_scores + kSquareValues;
  Squares::multiply(packed_rows(scratch.key_rows + panels.place(key, 0)),
                    scratch.queries + panels.place(query, 0), panels.size, {scores});
  Squares::multiply(packed_rows(scratch.value_rows + panels.place(key, 0)),
                    scratch.d_mixed + panels.place(query, 0), panels.size, {d_probabilities});
  differentiate_square(scores, d_probabilities,
                       {scratch.log_sums + first_query, scratch.row_products + first_query},
                       head.scale, key == query, probabilities, d_scores);
  pack_rows_transposed({d_scores, kLineValues, kPanelSize, kPanelSize}, d_score_rows);
  for (int64_t q = 0; q < panels.size; ++q) {
    const int64_t column = q * kPanelSize;
    Squares::multiply_add(packed_rows(probabilities),
                          scratch.d_mixed_columns + panels.place(query, q), 1,
                          {scratch.d_value + column, width});
    Squares::multiply_add(packed_rows(d_scores), scratch.query_columns + panels.place(query, q), 1,
                          {scratch.d_key + column, width});
    Squares::multiply_add(packed_rows(d_score_rows), scratch.key_columns + panels.place(key, q), 1,
                          {scratch.d_query + first_query * width + column, width});
  }
}

// For each panel of queries: scores against all keys up to it, their exponentials, and the product
// with the values. Scores of one panel of queries are in memory at a time.
template <typename Squares>
void attend_by(const HeadShape& head, const BF16* query, const BF16* key, const BF16* value,
               const HeadScratch& scratch, BF16* mixed, float* log_sums) {
  // Scope configures the tiles while they are needed.
  [[maybe_unused]] const typename Squares::Scope scope;
  const Panels panels(head);
  const int64_t score_row = panels.row<float>(), probability_row = panels.row<BF16>();
  for_squares(head, query, head.stride, [&](int64_t p, int64_t q, const Rectangle<BF16>& square) {
    pack_rows(square, scratch.queries + panels.place(p, q));
  });
  for_squares(head, key, head.stride, [&](int64_t p, int64_t q, const Rectangle<BF16>& square) {
    pack_columns_transposed(square, scratch.keys + panels.place(p, q));
  });
  for_squares(head, value, head.stride, [&](int64_t p, int64_t q, const Rectangle<BF16>& square) {
    pack_columns(square, scratch.values + (q * panels.length + p) * kUnitSize);
  });
  // Causal: panel p of the queries sees the panels of keys up to p.
  for (int64_t p = 0; p < panels.length; ++p) {
    const int64_t first = p * kPanelSize, rows = std::min(kPanelSize, head.length - first);
    for (int64_t other = 0; other <= p; ++other) {
      Squares::multiply(packed_rows(scratch.queries + panels.place(p, 0)),
                        scratch.keys + panels.place(other, 0), panels.size,
                        {scratch.scores + other * kPanelSize, score_row});
    }
    float inverses[kPanelSize];
    for (int64_t row = 0; row < rows; ++row) {
      const auto sums =
          exponentials_of(scratch.scores + row * score_row, first + row + 1, first + kPanelSize,
                          head.scale, scratch.probabilities + row * probability_row);
      log_sums[first + row] = sums.log_sum;
      inverses[row] = sums.inverse;
    }
    for (int64_t q = 0; q < panels.size; ++q) {
      Squares::multiply({scratch.probabilities, probability_row, kLineValues},
                        scratch.values + q * panels.length * kUnitSize, p + 1, {scratch.product});
      for (int64_t row = 0; row < rows; ++row) {
        store_scaled(scratch.product + row * kPanelSize, inverses[row], head.size - q * kPanelSize,
                     mixed + (first + row) * head.mixed_stride + q * kPanelSize);
      }
    }
  }
}

// As FlashAttention-2: recomputes the probabilities from the log-sums, square by square.
template <typename Squares>
void attend_backward_by(const HeadShape& head, const HeadBackward<BF16>& backward,
                        const HeadScratch& scratch) {
  [[maybe_unused]] const typename Squares::Scope scope;
  const Panels panels(head);
  pack_backward(head, backward, scratch);
  // The sum over keys of p dp equals the row's output times its gradient. So it needs no pass over
  // the keys before the squares (FlashAttention-2, Dao 2023).
  multiply_rows(head, backward.mixed, backward.d_mixed, scratch.row_products);
  std::fill_n(scratch.log_sums, panels.length * kPanelSize, 0.0F);
  // Powers of two are cheaper than of e, so the logarithms are converted once.
  for (int64_t i = 0; i < head.length; ++i) scratch.log_sums[i] = backward.log_sums[i] * kLog2E;
  std::fill_n(scratch.d_query, panels.all() * kSquareValues, 0.0F);
  // Keys outside, queries inside: the gradients of a panel of keys stay in the cache, and only the
  // queries' gradients are added up in memory.
  for (int64_t key = 0; key < panels.length; ++key) {
    const int64_t first = key * kPanelSize, rows = std::min(kPanelSize, head.length - first);
    std::fill_n(scratch.d_key, panels.size * kSquareValues, 0.0F);
    std::fill_n(scratch.d_value, panels.size * kSquareValues, 0.0F);
    for (int64_t query = key; query < panels.length; ++query) {
      add_square_gradients<Squares>(head, key, query, scratch);
    }
    float* const d_key = backward.d_key + first * head.stride;
    float* const d_value = backward.d_value + first * head.stride;
    store_gradient(head, scratch.d_key, rows, backward.adds, d_key);
    store_gradient(head, scratch.d_value, rows, backward.adds, d_value);
  }
  store_gradient(head, scratch.d_query, head.length, /*adds=*/false, backward.d_query);
}

}  // namespace

// Each packed matrix has whole units; the rest of the last one is zeros.
HeadScratch cut_head_scratch(ArenaCutter& cutter, const HeadShape& head) {
  const Panels panels(head);
  HeadScratch scratch;
  for (BF16** packed : {&scratch.keys, &scratch.key_rows, &scratch.key_columns, &scratch.values,
                        &scratch.value_rows, &scratch.queries, &scratch.query_columns,
                        &scratch.d_mixed, &scratch.d_mixed_columns}) {
    cutter.cut(*packed, panels.all() * kUnitSize);
  }
  cutter.cut(scratch.scores, kPanelSize * panels.row<float>());
  cutter.cut(scratch.probabilities, kPanelSize * panels.row<BF16>());
  cutter.cut(scratch.product, 2 * kSquareValues);
  cutter.cut(scratch.squares, 3 * kSquareValues);
  cutter.cut(scratch.d_query, panels.all() * kSquareValues);
  cutter.cut(scratch.d_key, panels.size * kSquareValues);
  cutter.cut(scratch.d_value, panels.size * kSquareValues);
  cutter.cut(scratch.log_sums, panels.length * kPanelSize);
  cutter.cut(scratch.row_products, panels.length * kPanelSize);
  return scratch;
}

void attend_head(InstructionSet by, const HeadShape& head, const BF16* query, const BF16* key,
                 const BF16* value, const HeadScratch& scratch, BF16* mixed, float* log_sums) {
  if (by == InstructionSet::kAmx) {
    attend_by<AmxSquares>(head, query, key, value, scratch, mixed, log_sums);
  } else {
    attend_by<PairSquares>(head, query, key, value, scratch, mixed, log_sums);
  }
}

void attend_head_backward(InstructionSet by, const HeadShape& head,
                          const HeadBackward<BF16>& backward, const HeadScratch& scratch) {
  if (by == InstructionSet::kAmx) {
    attend_backward_by<AmxSquares>(head, backward, scratch);
  } else {
    attend_backward_by<PairSquares>(head, backward, scratch);
  }
}

}  // namespace farstep

FARSTEP_CODE_END

#else

namespace farstep {

namespace {

[[noreturn]] void lack_code() {
  throw InternalError("built without code for AMX and AVX-512: ask attends_heads_by() before");
}

}  // namespace

HeadScratch cut_head_scratch(ArenaCutter&, const HeadShape&) {
  lack_code();
}
void attend_head(InstructionSet, const HeadShape&, const BF16*, const BF16*, const BF16*,
                 const HeadScratch&, BF16*, float*) {
  lack_code();
}
void attend_head_backward(InstructionSet, const HeadShape&, const HeadBackward<BF16>&,
                          const HeadScratch&) {
  lack_code();
}

}  // namespace farstep

#endif

namespace farstep {

bool attends_heads_by(InstructionSet set) {
  const bool has_code = set == InstructionSet::kAmx || set == InstructionSet::kAvx512Bf16;
  return FARSTEP_X86_CODE && has_code && has_instructions(set);
}

}  // namespace farstep
