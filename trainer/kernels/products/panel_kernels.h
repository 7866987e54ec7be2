// The inner loops of matrix products: one table of functions for each instruction set.
//
// A panel is some rows of the first factor, or some columns of the second, over a part of the inner
// values. It is packed in units of 32 inner values; values beyond the factor are 0. T is the type
// of the factors (float or BF16), P that of packed panels. Tables are constants. Their functions
// are thread-safe, except that begin() and end() change the thread's state.
#pragma once

#include <cstdint>

#include "trainer/base/processor/instruction_set.h"
#include "trainer/kernels/numbers/bf16.h"

namespace farstep {

constexpr int64_t kUnitValues = 32;                   // inner values of a unit
constexpr int64_t kLongestPanel = 48;                 // rows or columns
constexpr int64_t kLineBytes = 64, kLineFloats = 16;  // of a cache line

// A part of a matrix in memory; its lines are `stride` values apart.
template <typename T>
struct Rectangle {
  const T* values = nullptr;
  int64_t stride = 0, lines = 0, columns = 0;
};

// A panel of rows, packed or at its place in the matrix.
template <typename P>
struct RowPanel {
  const P* values = nullptr;
  int64_t stride = kUnitValues;  // between rows
  int64_t step = 0;              // between units
  const P* last = nullptr;       // the last, incomplete unit, packed; null if all are complete
};

// The product of two panels, which is stored row by row while the next one is computed. `rows` and
// `columns` are those that the matrix has.
struct PanelResult {
  float* from = nullptr;  // (rows, columns) of panels
  float* to = nullptr;
  int64_t stride = 0, rows = 0, columns = 0;
  bool add = false, past_cache = false;
  int64_t stored = 0;  // rows
};

// Data for the next product, to be fetched during this one: `lines` lines for each unit.
struct Ahead {
  const void* values = nullptr;
  int64_t stride_bytes = 0, line_bytes = 0, lines = 0;
  int64_t step_bytes = 0;  // between units
};

// Fetches one unit's lines into the second-level cache.
inline void fetch(const Ahead& ahead, int64_t unit) {
  const char* line = static_cast<const char*>(ahead.values) + unit * ahead.step_bytes;
  for (int64_t i = 0; i < ahead.lines; ++i, line += ahead.stride_bytes) {
    for (int64_t byte = 0; byte < ahead.line_bytes; byte += kLineBytes) {
      __builtin_prefetch(line + byte, /*rw=*/0, /*locality=*/2);
    }
  }
}

// Fetches the memory of a result for writing, unless it is stored past the caches.
inline void fetch(const PanelResult& result) {
  if (result.past_cache) return;
  for (int64_t row = 0; row < result.rows; ++row) {
    for (int64_t i = 0; i < result.columns; i += kLineFloats) {
      __builtin_prefetch(result.to + row * result.stride + i, /*rw=*/1, /*locality=*/3);
    }
  }
}

// Returns how many rows of a result are to be stored once `units_made` of `units` are computed.
inline int64_t rows_due(int64_t rows, int64_t units_made, int64_t units) {
  return (rows * units_made + units - 1) / units;
}

template <typename T, typename P>
struct PanelKernels {
  InstructionSet instructions;
  int64_t rows, columns;  // of a panel, at most kLongestPanel
  // A product is cut into parts of at most part_values inner values. A block of panels has
  // block_bytes; it stays in the second-level cache while the other factor's panels pass.
  int64_t part_values, block_bytes;
  bool takes_rows_as_they_lie;

  // A thread calls begin() before the functions below and end() after them.
  void (*begin)();
  void (*end)();
  // Pack one unit of a panel. The lines of `from` are the panel's rows or columns; or inner values,
  // if the factor must be transposed.
  void (*pack_rows)(const Rectangle<T>& from, bool transposed, P* to);
  void (*pack_columns)(const Rectangle<T>& from, bool transposed, P* to);
  // Computes the product of two panels of `units`, and stores the rest of `before`. May leave out
  // what the matrix does not have.
  void (*multiply)(const RowPanel<P>& rows, const P* columns, int64_t units,
                   const PanelResult& product, PanelResult& before, const Ahead& ahead);
  // Stores the rows of the result up to `end`.
  void (*store)(PanelResult& result, int64_t end);
};

// Return null if the compiler cannot build them; callers must check has_instructions().
const PanelKernels<BF16, BF16>* amx_panels();
const PanelKernels<BF16, BF16>* avx512_bf16_panels();
template <typename T>
const PanelKernels<T, float>* avx512_panels();
template <typename T>
const PanelKernels<T, float>* avx2_panels();

// Multiplies AMX tiles in registers `count` times, a multiple of 4: the peak of the matrix unit,
// for benchmarks.
void amx_tile_products(int64_t count);
constexpr double kAmxTileOperations = 2.0 * 16 * 16 * 32;

}  // namespace farstep
