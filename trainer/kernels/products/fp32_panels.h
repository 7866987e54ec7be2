// Products of fp32 panels, for vectors of any width.
//
// A source of one instruction set includes this file inside its FARSTEP_..._CODE; this file
// includes nothing. Before, the source defines in its namespace: `Lanes`, a vector type with its
// operations; kPanelColumns, the columns of a panel; kGroupRows and kGroupColumns, the part of a
// product that stays in registers. A packed unit of rows has 32 values of each row. A packed unit
// of columns has all columns for 32 inner values.
#pragma once

constexpr int64_t kPanelRows = 32;
static_assert(kPanelRows <= kLongestPanel && kPanelColumns <= kLongestPanel);

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

template <typename T>
inline void copy_lines(const Rectangle<T>& from, float* to) {
  for (int64_t i = 0; i < from.lines; ++i) {
    for (int64_t j = 0; j < from.columns; j += Lanes::kCount) {
      Lanes::store(to + i * from.columns + j, Lanes::load(from.values + i * from.stride + j));
    }
  }
}

template <typename T>
inline void transpose_lines(const Rectangle<T>& from, float* to) {
  for (int64_t i = 0; i < from.lines; i += Lanes::kCount) {
    for (int64_t j = 0; j < from.columns; j += Lanes::kCount) {
      Lanes::Vector lines[Lanes::kCount];
      for (int64_t line = 0; line < Lanes::kCount; ++line) {
        lines[line] = Lanes::load(from.values + (i + line) * from.stride + j);
      }
      Lanes::store_transposed(lines, to + j * from.lines + i, from.lines);
    }
  }
}

// Packs a unit of kSize rows or columns. `wants_inner_lines` puts the values with the same inner
// index side by side.
template <typename T, int64_t kSize>
inline void pack(const Rectangle<T>& from, bool has_inner_lines, bool wants_inner_lines,
                 float* to) {
  alignas(64) T room[kSize * kUnitValues];
  const auto unit = has_inner_lines ? whole(from, kUnitValues, kSize, room)
                                    : whole(from, kSize, kUnitValues, room);
  if (has_inner_lines == wants_inner_lines) {
    copy_lines(unit, to);
  } else {
    transpose_lines(unit, to);
  }
}

template <typename T>
void pack_rows(const Rectangle<T>& from, bool transposed, float* to) {
  pack<T, kPanelRows>(from, transposed, /*wants_inner_lines=*/false, to);
}

template <typename T>
void pack_columns(const Rectangle<T>& from, bool transposed, float* to) {
  pack<T, kPanelColumns>(from, !transposed, /*wants_inner_lines=*/true, to);
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

// Computes kGroupRows rows and some columns of a product from `units`, or adds to them if not
// `begins`.
template <int64_t kVectors>
inline void multiply_group(const float* rows, const float* columns, int64_t units, bool begins,
                           float* product) {
  Lanes::Vector sums[kGroupRows][kVectors];
  for (int64_t row = 0; row < kGroupRows; ++row) {
    for (int64_t i = 0; i < kVectors; ++i) {
      sums[row][i] =
          begins ? Lanes::zero() : Lanes::load(product + row * kPanelColumns + i * Lanes::kCount);
    }
  }
  for (int64_t unit = 0; unit < units; ++unit, rows += kPanelRows * kUnitValues) {
    for (int64_t inner = 0; inner < kUnitValues; ++inner, columns += kPanelColumns) {
      Lanes::Vector of_columns[kVectors];
      for (int64_t i = 0; i < kVectors; ++i) {
        of_columns[i] = Lanes::load(columns + i * Lanes::kCount);
      }
#pragma GCC unroll 8
      for (int64_t row = 0; row < kGroupRows; ++row) {
        const auto value = Lanes::all(rows[row * kUnitValues + inner]);
        for (int64_t i = 0; i < kVectors; ++i) {
          sums[row][i] = Lanes::multiply_add(value, of_columns[i], sums[row][i]);
        }
      }
    }
  }
  for (int64_t row = 0; row < kGroupRows; ++row) {
    for (int64_t i = 0; i < kVectors; ++i) {
      Lanes::store(product + row * kPanelColumns + i * Lanes::kCount, sums[row][i]);
    }
  }
}

void multiply(const RowPanel<float>& rows, const float* columns, int64_t units, float* product,
              PanelResult& before, const Ahead& ahead) {
  constexpr int64_t kUnitsAtOnce = 3;  // so both panels' units stay in the first-level cache
  constexpr int64_t kVectors = kGroupColumns / Lanes::kCount;
  constexpr int64_t kGroups = kPanelRows / kGroupRows;
  fetch_stored(before, rows_due(kPanelRows, 1, units));
  for (int64_t first = 0; first < units; first += kUnitsAtOnce) {
    const int64_t count = std::min(kUnitsAtOnce, units - first);
    const float* const unit_columns = columns + first * kPanelColumns * kUnitValues;
    for (int64_t group = 0; group < kGroups; ++group) {
      const int64_t row = group * kGroupRows;
      const float* const unit_rows = rows.values + first * kPanelRows * kUnitValues;
      for (int64_t column = 0; column < kPanelColumns; column += kGroupColumns) {
        multiply_group<kVectors>(unit_rows + row * kUnitValues, unit_columns + column, count,
                                 first == 0, product + row * kPanelColumns + column);
      }
      const int64_t begin = first + count * group / kGroups;
      const int64_t end = first + count * (group + 1) / kGroups;
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
          .block_bytes = int64_t{1} << 19,  // larger blocks were not faster (docs/results.md)
          .takes_rows_as_they_lie = false,
          .begin = nothing,
          .end = nothing,
          .pack_rows = pack_rows<T>,
          .pack_columns = pack_columns<T>,
          .multiply = multiply,
          .store = store};
}
