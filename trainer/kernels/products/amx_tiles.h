// Products of packed panels (bf16_packing.h) by the tiles of AMX.
//
// A tile is half of a packed unit: 16 rows of 32 values of the first factor, or 16 columns of the
// second. A product of 32 x 32 occupies four tiles, so two tiles of each factor serve four
// instructions. For sources with FARSTEP_AMX_CODE only. Tiles belong to a thread; otherwise not
// thread-safe.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "trainer/kernels/products/bf16_packing.h"

FARSTEP_AMX_CODE

namespace farstep {

struct alignas(kLineBytes) TileConfig {
  uint8_t palette = 1, start_row = 0;
  std::array<uint8_t, 14> reserved{};
  std::array<uint16_t, 16> line_bytes{};
  std::array<uint8_t, 16> lines{};
};

constexpr TileConfig whole_tiles() {
  TileConfig config;
  std::fill_n(config.line_bytes.begin(), 8, uint16_t{kLineBytes});
  std::fill_n(config.lines.begin(), 8, uint8_t{kHalfLines});
  return config;
}

// Configures this thread's tiles as 16 lines of 64 bytes, until _tile_release().
inline void load_tile_config() {
  // Static, not local: the intrinsic declares only the first bytes as read, so the compiler would
  // remove stores to the others.
  static constexpr TileConfig kConfig = whole_tiles();
  _tile_loadconfig(&kConfig);
}

class Tiles {
 public:
  Tiles() { load_tile_config(); }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// The product of two panels is in tiles 0 to 3.
inline void clear_product() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
inline void load_product(const Square& from) {
  const int64_t bytes = from.stride * int64_t{sizeof(float)};
  _tile_loadd(0, from.values, bytes);
  _tile_loadd(1, from.values + kHalfLines, bytes);
  _tile_loadd(2, from.values + kHalfLines * from.stride, bytes);
  _tile_loadd(3, from.values + kHalfLines * from.stride + kHalfLines, bytes);
}
inline void store_product(const Square& to) {
  const int64_t bytes = to.stride * int64_t{sizeof(float)};
  _tile_stored(0, to.values, bytes);
  _tile_stored(1, to.values + kHalfLines, bytes);
  _tile_stored(2, to.values + kHalfLines * to.stride, bytes);
  _tile_stored(3, to.values + kHalfLines * to.stride + kHalfLines, bytes);
}

// Adds the products of two tiles of each factor to tiles 0 to 3. Loads stand between the products
// that use them, so that the matrix unit does not wait.
inline __attribute__((always_inline)) void add_pair(const BF16* upper, const BF16* lower,
                                                    int64_t stride_bytes, const BF16* columns) {
  _tile_loadd(4, upper, stride_bytes);
  _tile_loadd(6, columns, kLineBytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, columns + kHalfValues, kLineBytes);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(5, lower, stride_bytes);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// Adds the product of two panels of `units` to tiles 0 to 3, and calls `meanwhile(i)` after unit i.
// A tile product takes longer than issuing it, so other instructions run beside it.
template <typename Meanwhile>
inline __attribute__((always_inline)) void add_panels(const RowPanel<BF16>& rows,
                                                      const BF16* columns, int64_t units,
                                                      const Meanwhile& meanwhile) {
  const BF16 *upper = rows.values, *lower = rows.values + kHalfLines * rows.stride;
  const int64_t whole = rows.last == nullptr ? units : units - 1;
  for (int64_t i = 0; i < whole; ++i) {
    add_pair(upper, lower, rows.stride * int64_t{sizeof(BF16)}, columns);
    upper += rows.step;
    lower += rows.step;
    columns += kUnitSize;
    meanwhile(i);
  }
  if (rows.last != nullptr) add_pair(rows.last, rows.last + kHalfValues, kLineBytes, columns);
}

// How attention multiplies with tiles (a parameter of attend_by()).
struct AmxSquares {
  using Scope = Tiles;

  // Replace `to` by the product of two panels of `units`, or add the product to it.
  static void multiply(const RowPanel<BF16>& rows, const BF16* columns, int64_t units,
                       const Square& to) {
    clear_product();
    add_panels(rows, columns, units, [](int64_t) {});
    store_product(to);
  }
  static void multiply_add(const RowPanel<BF16>& rows, const BF16* columns, int64_t units,
                           const Square& to) {
    load_product(to);
    add_panels(rows, columns, units, [](int64_t) {});
    store_product(to);
  }
};

}  // namespace farstep

FARSTEP_CODE_END
