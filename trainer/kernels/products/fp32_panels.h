// Products of fp32 panels, for vectors of any width.
//
// A source of one instruction set includes this file inside its FARSTEP_..._CODE; this file
// includes nothing. Before, the source defines in its namespace: `Lanes`, a vector type with its
// operations; kPanelColumns, the columns of a panel; kTileRows and kTileColumns, the part of a
// product that stays in registers. A packed unit consists of groups: of Lanes::kCount rows, or of
// kTileColumns columns. A group has its values of one inner index side by side.
#pragma once

constexpr int64_t kPanelRows = 32;
static_assert(kPanelRows <= kLongestPanel && kPanelColumns <= kLongestPanel);
static_assert(kPanelRows % Lanes::kCount == 0 && Lanes::kCount % kTileRows == 0);
static_assert(kPanelColumns % kTileColumns == 0 && kTileColumns % Lanes::kCount == 0);

// Returns `from`, or if it is not a whole unit, a copy in `room` padded with zeros.
template <typename T>
inline Rectangle<T> whole(const Rectangle<T>& from, int64_t lines, int64_t columns, T* room) {
  if (from.lines == lines && from.columns == columns) return from;
  std::fill_n(room, lines * columns, T{});
  for (int64_t i = 0; i < from.lines; ++i) {
    std::copy_n(from.values + i * from.stride, from.columns, room + i * columns);
  }
  return {room, columns, lines, columns};
}

// Packs a unit of kSize rows or columns. The lines in memory are inner values, `stride` apart.
template <int64_t kSize, typename T>
inline void copy_lines(const T* from, int64_t stride, float* to) {
  for (int64_t inner = 0; inner < kUnitValues; ++inner) {
    for (int64_t i = 0; i < kSize; i += Lanes::kCount) {
      Lanes::store(to + inner * kSize + i, Lanes::load(from + inner * stride + i));
    }
  }
}

// Does the same where the lines in memory are the rows or columns.
template <int64_t kSize, typename T>
inline void transpose_lines(const T* from, int64_t stride, float* to) {
  for (int64_t i = 0; i < kSize; i += Lanes::kCount) {
    for (int64_t inner = 0; inner < kUnitValues; inner += Lanes::kCount) {
      Lanes::Vector lines[Lanes::kCount];
      for (int64_t line = 0; line < Lanes::kCount; ++line) {
        lines[line] = Lanes::load(from + (i + line) * stride + inner);
      }
      Lanes::store_transposed(lines, to + inner * kSize + i, kSize);
    }
  }
}

// Packs a unit of kSize rows or columns in groups of kGroup.
template <typename T, int64_t kSize, int64_t kGroup>
inline void pack(const Rectangle<T>& from, bool has_inner_lines, float* to) {
  alignas(64) T room[kSize * kUnitValues];
  const auto unit = has_inner_lines ? whole(from, kUnitValues, kSize, room)
                                    : whole(from, kSize, kUnitValues, room);
  for (int64_t first = 0; first < kSize; first += kGroup, to += kGroup * kUnitValues) {
    if (has_inner_lines) {
      copy_lines<kGroup>(unit.values + first, unit.stride, to);
    } else {
      transpose_lines<kGroup>(unit.values + first * unit.stride, unit.stride, to);
    }
  }
}

template <typename T>
void pack_rows(const Rectangle<T>& from, bool transposed, float* to) {
  pack<T, kPanelRows, Lanes::kCount>(from, transposed, to);
}

template <typename T>
void pack_columns(const Rectangle<T>& from, bool transposed, float* to) {
  pack<T, kPanelColumns, kTileColumns>(from, !transposed, to);
}

// Stores whole vectors without masks: with masked stores products took an eighth longer on Zen 4.
void store(PanelResult& result, int64_t end) {
  const int64_t whole_vectors = result.columns / Lanes::kCount * Lanes::kCount;
  for (end = std::min(end, result.rows); result.stored < end; ++result.stored) {
    const float* const made = result.from + result.stored * kPanelColumns;
    float* const line = result.to + result.stored * result.stride;
    for (int64_t i = 0; i < whole_vectors; i += Lanes::kCount) {
      const auto values = Lanes::load(made + i);
      if (result.past_cache) {
        Lanes::stream(line + i, values);
      } else {
        Lanes::store(line + i, result.add ? Lanes::add(values, Lanes::load(line + i)) : values);
      }
    }
    if (whole_vectors == result.columns) continue;
    const auto mask = Lanes::first(result.columns - whole_vectors);
    auto values = Lanes::load(made + whole_vectors);
    float* const rest = line + whole_vectors;
    if (result.add) values = Lanes::add(values, Lanes::load_first(rest, mask));
    Lanes::store_first(rest, mask, values);
  }
}

// Prefetches for writing the lines of the rows up to `end`: a store that misses the caches delays
// all later ones. Always inlined, because GCC drops calls of a function that only prefetches.
[[gnu::always_inline]] inline void fetch_stored(const PanelResult& result, int64_t end) {
  constexpr int64_t kLineValues = 16;
  if (result.past_cache) return;
  for (int64_t row = result.stored; row < std::min(end, result.rows); ++row) {
    const float* const line = result.to + row * result.stride;
    for (int64_t i = 0; i < result.columns; i += kLineValues) {
      __builtin_prefetch(line + i, /*rw=*/1, /*locality=*/3);
    }
  }
}

// Computes a tile of a product from `units`, or adds to it if not kBegins. The tile has kVectors
// vectors of columns.
//
// Two hardware threads share what a core starts in a cycle. If the other one is busy, perhaps with
// another tenant's work, each instruction beside the multiplications costs time. Hence the unrolled
// loop (docs/results/products.md).
template <int64_t kVectors, bool kBegins>
inline void multiply_tile(const float* rows, const float* columns, int64_t units, float* product) {
  // The loops over sums are unrolled fully: otherwise GCC keeps the sums in memory.
  Lanes::Vector sums[kTileRows][kVectors];
#pragma GCC unroll 8
  for (int64_t row = 0; row < kTileRows; ++row) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kVectors; ++i) {
      sums[row][i] =
          kBegins ? Lanes::zero() : Lanes::load(product + row * kPanelColumns + i * Lanes::kCount);
    }
  }
  for (int64_t unit = 0; unit < units; ++unit) {
    const float* const of_rows = rows + unit * kPanelRows * kUnitValues;
    const float* const of_columns = columns + unit * kPanelColumns * kUnitValues;
#pragma GCC unroll 8
    for (int64_t inner = 0; inner < kUnitValues; ++inner) {
      Lanes::Vector vectors[kVectors];
#pragma GCC unroll 4
      for (int64_t i = 0; i < kVectors; ++i) {
        vectors[i] = Lanes::load(of_columns + inner * kTileColumns + i * Lanes::kCount);
      }
#pragma GCC unroll 8
      for (int64_t row = 0; row < kTileRows; ++row) {
        const auto value = Lanes::all(of_rows[inner * Lanes::kCount + row]);
#pragma GCC unroll 4
        for (int64_t i = 0; i < kVectors; ++i) {
          sums[row][i] = Lanes::multiply_add(value, vectors[i], sums[row][i]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < kTileRows; ++row) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kVectors; ++i) {
      Lanes::store(product + row * kPanelColumns + i * Lanes::kCount, sums[row][i]);
    }
  }
}

template <int64_t kVectors>
inline void multiply_tile(const float* rows, const float* columns, int64_t units, bool begins,
                          float* product) {
  if (begins) {
    multiply_tile<kVectors, true>(rows, columns, units, product);
  } else {
    multiply_tile<kVectors, false>(rows, columns, units, product);
  }
}

// Computes kTileRows rows of a product from `units`, or adds to them if not `begins`. The last tile
// has no more vectors than `width` needs. Heads of 64 columns take two panels of 48, a third of
// which is empty.
inline void multiply_rows(const float* rows, const float* columns, int64_t width, int64_t units,
                          bool begins, float* product) {
  static_assert(kTileColumns == 3 * Lanes::kCount);
  for (int64_t i = 0; i < width; i += kTileColumns) {
    const float* const of_tile = columns + i * kUnitValues;
    if (width - i > 2 * Lanes::kCount) {
      multiply_tile<3>(rows, of_tile, units, begins, product + i);
    } else if (width - i > Lanes::kCount) {
      multiply_tile<2>(rows, of_tile, units, begins, product + i);
    } else {
      multiply_tile<1>(rows, of_tile, units, begins, product + i);
    }
  }
}

void multiply(const RowPanel<float>& rows, const float* columns, int64_t units,
              const PanelResult& product, PanelResult& before, const Ahead& ahead) {
  // So that the columns of a tile stay in the first-level cache while all rows pass.
  constexpr int64_t kUnitsAtOnce = 4;
  fetch_stored(before, rows_due(kPanelRows, 1, units));
  for (int64_t first = 0; first < units; first += kUnitsAtOnce) {
    const int64_t count = std::min(kUnitsAtOnce, units - first);
    const float* const unit_rows = rows.values + first * kPanelRows * kUnitValues;
    const float* const unit_columns = columns + first * kPanelColumns * kUnitValues;
    for (int64_t row = 0; row < kPanelRows; row += kTileRows) {
      if (row < product.rows) {
        const int64_t in_group = row % Lanes::kCount;
        multiply_rows(unit_rows + (row - in_group) * kUnitValues + in_group, unit_columns,
                      product.columns, count, first == 0, product.from + row * kPanelColumns);
      }
      const int64_t begin = first + count * row / kPanelRows;
      const int64_t end = first + count * (row + kTileRows) / kPanelRows;
      store(before, rows_due(kPanelRows, end, units));
      fetch_stored(before, rows_due(kPanelRows, end + 1, units));
      for (int64_t unit = begin; unit < end; ++unit) fetch(ahead, unit);
    }
  }
}

void nothing() {}

template <typename T>
constexpr PanelKernels<T, float> fp32_panels(InstructionSet instructions) {
  return {.instructions = instructions,
          .rows = kPanelRows,
          .columns = kPanelColumns,
          .part_values = 1024,  // shorter parts pass the result through memory more often
          .block_bytes = int64_t{1} << 19,  // larger ones: no faster (docs/results/products.md)
          .takes_rows_as_they_lie = false,
          .begin = nothing,
          .end = nothing,
          .pack_rows = pack_rows<T>,
          .pack_columns = pack_columns<T>,
          .multiply = multiply,
          .store = store};
}
