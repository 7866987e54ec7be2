// Tiles of AMX, and the products of panels (amx_panels.h) in them.
//
// For sources with FARSTEP_AMX_CODE only. Tiles are a thread's own; not thread-safe otherwise.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "trainer/kernels/amx.h"
#include "trainer/kernels/amx_panels.h"

FARSTEP_AMX_CODE

namespace farstep::amx {

struct alignas(kLineBytes) TileConfig {
  uint8_t palette = 1, start_row = 0;
  std::array<uint8_t, 14> reserved{};
  std::array<uint16_t, 16> line_bytes{};
  std::array<uint8_t, 16> lines{};
};

constexpr TileConfig whole_tiles() {
  TileConfig config;
  std::fill_n(config.line_bytes.begin(), 8, uint16_t{kLineBytes});
  std::fill_n(config.lines.begin(), 8, uint8_t{kTileLines});
  return config;
}

// Tiles of 16 lines of 64 bytes, as long as it lives.
class Tiles {
 public:
  Tiles() {
    // Not a local variable: the intrinsic tells the compiler of its first bytes alone, and stores
    // to the others would be left out.
    static constexpr TileConfig kConfig = whole_tiles();
    _tile_loadconfig(&kConfig);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// 32 rows of the first factor: packed, or where they lie.
struct RowPanel {
  const BF16* values = nullptr;
  int64_t stride = kLineValues;  // between rows
  int64_t step = kPairValues;    // from a pair of tiles to the next
  const BF16* last = nullptr;    // packed, the inner values that fill no tile, where there are any
};

// What a product of two panels becomes: 32 x 32, in the tiles 0 to 3 while it is made.
struct PanelProduct {
  float* values = nullptr;
  int64_t stride = kPanelSize;  // between rows

  void clear() const {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  void load() const {
    const int64_t bytes = stride * int64_t{sizeof(float)};
    _tile_loadd(0, values, bytes);
    _tile_loadd(1, values + kTileLines, bytes);
    _tile_loadd(2, values + kTileLines * stride, bytes);
    _tile_loadd(3, values + kTileLines * stride + kTileLines, bytes);
  }
  void store() const {
    const int64_t bytes = stride * int64_t{sizeof(float)};
    _tile_stored(0, values, bytes);
    _tile_stored(1, values + kTileLines, bytes);
    _tile_stored(2, values + kTileLines * stride, bytes);
    _tile_stored(3, values + kTileLines * stride + kTileLines, bytes);
  }
};

// Adds the product of two pairs of tiles to the tiles 0 to 3.
inline __attribute__((always_inline)) void add_pair(const BF16* upper, const BF16* lower,
                                                    int64_t stride_bytes, const BF16* columns) {
  _tile_loadd(4, upper, stride_bytes);
  _tile_loadd(6, columns, kLineBytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, columns + kTileValues, kLineBytes);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(5, lower, stride_bytes);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// Adds the product of panels of `pairs` pairs of tiles to the tiles 0 to 3. `meanwhile(i)` is
// called beside the i-th: the matrix unit is busy for longer than its instructions take to give.
template <typename Meanwhile>
inline __attribute__((always_inline)) void add_panels(const RowPanel& rows, const BF16* columns,
                                                      int64_t pairs, const Meanwhile& meanwhile) {
  const BF16 *upper = rows.values, *lower = rows.values + kTileLines * rows.stride;
  const int64_t whole = rows.last == nullptr ? pairs : pairs - 1;
  for (int64_t i = 0; i < whole; ++i) {
    add_pair(upper, lower, rows.stride * int64_t{sizeof(BF16)}, columns);
    upper += rows.step;
    lower += rows.step;
    columns += kPairValues;
    meanwhile(i);
  }
  if (rows.last != nullptr) add_pair(rows.last, rows.last + kTileValues, kLineBytes, columns);
}

// `to` becomes, or gains, the product of panels of `pairs` pairs of tiles.
inline void multiply_panels(const RowPanel& rows, const BF16* columns, int64_t pairs,
                            const PanelProduct& to) {
  to.clear();
  add_panels(rows, columns, pairs, [](int64_t) {});
  to.store();
}
inline void multiply_add_panels(const RowPanel& rows, const BF16* columns, int64_t pairs,
                                const PanelProduct& to) {
  to.load();
  add_panels(rows, columns, pairs, [](int64_t) {});
  to.store();
}

}  // namespace farstep::amx

FARSTEP_AMX_CODE_END
