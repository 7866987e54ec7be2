// Kernels for products without vectors, which take rows as they lie, as those of AMX do. So that
// path is tested on every processor. Blocks and parts are short, so that small products have
// several.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trainer/kernels/products/panel_kernels.h"

namespace farstep {

constexpr int64_t kPlainRows = 16, kPlainColumns = 24;

inline void plain_nothing() {}

// A unit has a line of 32 inner values for each row or column. In `from` the lines are rows or
// columns too, or inner values.
template <int64_t kLines>
inline void pack_plain(const Rectangle<BF16>& from, bool has_inner_lines, BF16* to) {
  std::fill_n(to, kLines * kUnitValues, BF16{});
  for (int64_t line = 0; line < from.lines; ++line) {
    for (int64_t i = 0; i < from.columns; ++i) {
      to[has_inner_lines ? i * kUnitValues + line : line * kUnitValues + i] =
          from.values[line * from.stride + i];
    }
  }
}

inline void store_plain(PanelResult& result, int64_t end) {
  for (end = std::min(end, result.rows); result.stored < end; ++result.stored) {
    const float* const from = result.from + result.stored * kPlainColumns;
    float* const to = result.to + result.stored * result.stride;
    for (int64_t i = 0; i < result.columns; ++i) to[i] = (result.add ? to[i] : 0) + from[i];
  }
}

inline void multiply_plain(const RowPanel<BF16>& rows, const BF16* columns, int64_t units,
                           const PanelResult& product, PanelResult& before, const Ahead& ahead) {
  std::fill_n(product.from, kPlainRows * kPlainColumns, 0.0F);
  for (int64_t unit = 0; unit < units; ++unit) {
    fetch(ahead, unit);
    const bool is_last = rows.last != nullptr && unit + 1 == units;
    const BF16* const of_rows = is_last ? rows.last : rows.values + unit * rows.step;
    const int64_t stride = is_last ? kUnitValues : rows.stride;
    for (int64_t row = 0; row < product.rows; ++row) {
      for (int64_t column = 0; column < product.columns; ++column) {
        const BF16* const x = of_rows + row * stride;
        const BF16* const y = columns + (unit * kPlainColumns + column) * kUnitValues;
        float sum = 0;
        for (int64_t i = 0; i < kUnitValues; ++i) sum += to_float(x[i]) * to_float(y[i]);
        product.from[row * kPlainColumns + column] += sum;
      }
    }
  }
  store_plain(before, kPlainRows);
}

inline const PanelKernels<BF16, BF16>* plain_panels() {
  static constexpr PanelKernels<BF16, BF16> kPanels{
      .instructions = InstructionSet::kBaseline,
      .rows = kPlainRows,
      .columns = kPlainColumns,
      .part_values = 512,
      .block_bytes = kPlainColumns * 512 * int64_t{sizeof(BF16)},
      .takes_rows_as_they_lie = true,
      .begin = plain_nothing,
      .end = plain_nothing,
      .pack_rows = [](const Rectangle<BF16>& from, bool transposed,
                      BF16* to) { pack_plain<kPlainRows>(from, transposed, to); },
      .pack_columns = [](const Rectangle<BF16>& from, bool transposed,
                         BF16* to) { pack_plain<kPlainColumns>(from, !transposed, to); },
      .multiply = multiply_plain,
      .store = store_plain};
  return &kPanels;
}

}  // namespace farstep
