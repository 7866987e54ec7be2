#include "trainer/kernels/amx_product.h"

#include <algorithm>
#include <array>
#include <memory>

#include "trainer/kernels/amx.h"

#if FARSTEP_AMX_COMPILED

#include "trainer/kernels/amx_panels.h"
#include "trainer/kernels/amx_tiles.h"

FARSTEP_AMX_CODE

namespace farstep {

namespace {

using namespace amx;

// The inner values are taken in parts of at most so many; a block of panels of one factor fills
// half of the second-level cache, and columns that pass it by more than once are packed before.
constexpr int64_t kPartValues = 1408;
constexpr int64_t kBlockValues = int64_t{1} << 19;
constexpr int64_t kPassingValues = int64_t{3} << 19;
constexpr int64_t kLeastFetching = 8;  // panels of a block

// Equal pieces of at most `most`, in multiples of `unit`.
constexpr int64_t piece_of(int64_t size, int64_t most, int64_t unit) {
  const int64_t pieces = divided_up(size, std::max(most / unit * unit, unit));
  return divided_up(divided_up(size, pieces), unit) * unit;
}

struct alignas(kLineBytes) Scratch {
  std::array<BF16, kBlockValues> block;
  std::array<BF16, kPassingValues> passing;
  std::array<BF16, kPairValues> last;
  std::array<std::array<float, kPanelSize * kPanelSize>, 2> results;
};

Scratch& own_scratch() {
  thread_local const std::unique_ptr<Scratch> scratch(new Scratch);
  return *scratch;
}

// A part of the product on its way to memory, row by row.
struct Result {
  const float* from = nullptr;  // (32, 32)
  float* to = nullptr;
  int64_t stride = 0, rows = 0, columns = 0;
  bool add = false, past_cache = false;
  int64_t stored = 0;

  void store_until(int64_t end) {
    for (end = std::min(end, rows); stored < end; ++stored) store(stored);
  }

  void store(int64_t row) const {
    const float* const made = from + row * kPanelSize;
    float* const line = to + row * stride;
    auto low = _mm512_load_ps(made), high = _mm512_load_ps(made + kTileLines);
    if (past_cache) {
      _mm512_stream_ps(line, low);
      _mm512_stream_ps(line + kTileLines, high);
      return;
    }
    const auto low_mask = first_of_16(columns), high_mask = first_of_16(columns - kTileLines);
    if (add) {
      low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(low_mask, line));
      high = _mm512_add_ps(high, _mm512_maskz_loadu_ps(high_mask, line + kTileLines));
    }
    _mm512_mask_storeu_ps(line, low_mask, low);
    _mm512_mask_storeu_ps(line + kTileLines, high_mask, high);
  }
};

// A block of one factor's panels is packed and stays in the second-level cache while the panels of
// the other pass by: rows, as they lie in memory, pass columns; where the first factor is
// transposed, so that its rows are to be packed, columns pass rows.
class ThreadProduct {
 public:
  ThreadProduct(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                const Product& c)
      : m_(m), n_(n), k_(k), a_(a), b_(b), c_(c) {}

  void run() {
    const Tiles tiles;
    const int64_t part = piece_of(k_, kPartValues, kLineValues);
    for (first_k_ = 0; first_k_ < k_; first_k_ += part) {
      part_k_ = std::min(part, k_ - first_k_);
      pairs_ = divided_up(part_k_, kLineValues);
      if (a_.transposed) {
        columns_pass();
      } else {
        rows_pass();
      }
    }
    result_.store_until(kPanelSize);
    if (c_.past_cache) _mm_sfence();  // other threads see it as they see ordinary stores
  }

 private:
  void rows_pass() {
    for_blocks(n_, kBlockValues, [&](int64_t first, int64_t panels) {
      pack_columns_block(first, panels, scratch_.block.data());
      for (int64_t row = 0; row < m_; row += kPanelSize) {
        const auto rows = row_panel(row);
        const int64_t next = row + kPanelSize;
        for (int64_t i = 0; i < panels; ++i) {
          // This panel's share of the next rows is fetched; few panels have no time for it.
          const int64_t begin = kPanelSize * i / panels, end = kPanelSize * (i + 1) / panels;
          const BF16* const ahead = a_.values + (next + begin) * a_.stride + first_k_;
          const int64_t rows_ahead =
              next + kPanelSize <= m_ && panels >= kLeastFetching ? end - begin : 0;
          multiply(rows, panel(scratch_.block.data(), i), [&](int64_t pair) {
            for (int64_t j = 0; j < rows_ahead; ++j) {
              _mm_prefetch(ahead + j * a_.stride + pair * kLineValues, _MM_HINT_T1);
            }
          });
          begin_storing(row, first + i * kPanelSize);
        }
      }
    });
  }

  void columns_pass() {
    for_blocks(n_, kPassingValues, [&](int64_t first_column, int64_t column_panels) {
      pack_columns_block(first_column, column_panels, scratch_.passing.data());
      for_blocks(m_, kBlockValues, [&](int64_t first, int64_t panels) {
        pack_rows_block(first, panels);
        for (int64_t column = 0; column < column_panels; ++column) {
          const BF16* const columns = panel(scratch_.passing.data(), column);
          for (int64_t i = 0; i < panels; ++i) {
            multiply({panel(scratch_.block.data(), i)}, columns, [](int64_t) {});
            begin_storing(first + i * kPanelSize, first_column + column * kPanelSize);
          }
        }
      });
    });
  }

  // Calls task(first, panels) for blocks of [0, size) with at most `values` values of this part.
  template <typename Task>
  void for_blocks(int64_t size, int64_t values, const Task& task) const {
    const int64_t block = piece_of(size, values / (pairs_ * kLineValues), kPanelSize);
    for (int64_t first = 0; first < size; first += block) {
      task(first, divided_up(std::min(block, size - first), kPanelSize));
    }
  }

  BF16* panel(BF16* panels, int64_t which) const { return panels + which * pairs_ * kPairValues; }

  // Blocks are packed in the order in which the values lie in memory.
  void pack_columns_block(int64_t first, int64_t panels, BF16* to) const {
    const int64_t outer = b_.transposed ? panels : pairs_, inner = b_.transposed ? pairs_ : panels;
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t j = 0; j < inner; ++j) {
        const int64_t which = b_.transposed ? i : j, pair = b_.transposed ? j : i;
        pack_columns_pair(first + which * kPanelSize, pair, panel(to, which));
      }
    }
  }

  void pack_rows_block(int64_t first, int64_t panels) {
    for (int64_t pair = 0; pair < pairs_; ++pair) {
      for (int64_t i = 0; i < panels; ++i) {
        pack_rows_pair(first + i * kPanelSize, pair, panel(scratch_.block.data(), i));
      }
    }
  }

  // The `pair`-th two tiles of the panel that begins at `column`.
  void pack_columns_pair(int64_t column, int64_t pair, BF16* to) const {
    const int64_t k = pair * kLineValues, inner = std::min(kLineValues, part_k_ - k);
    const int64_t columns = std::min(kPanelSize, n_ - column);
    to += pair * kPairValues;
    if (b_.transposed) {
      pack_columns_transposed(
          {b_.values + column * b_.stride + first_k_ + k, b_.stride, columns, inner}, to);
    } else {
      pack_columns({b_.values + (first_k_ + k) * b_.stride + column, b_.stride, inner, columns},
                   to);
    }
  }

  // The `pair`-th two tiles of the panel that begins at `row`.
  void pack_rows_pair(int64_t row, int64_t pair, BF16* to) const {
    const int64_t k = pair * kLineValues, inner = std::min(kLineValues, part_k_ - k);
    const int64_t rows = std::min(kPanelSize, m_ - row);
    to += pair * kPairValues;
    if (a_.transposed) {
      pack_rows_transposed({a_.values + (first_k_ + k) * a_.stride + row, a_.stride, inner, rows},
                           to);
    } else {
      pack_rows({a_.values + row * a_.stride + first_k_ + k, a_.stride, rows, inner}, to);
    }
  }

  RowPanel row_panel(int64_t row) {
    if (row + kPanelSize > m_) {
      BF16* const to = scratch_.passing.data();
      for (int64_t pair = 0; pair < pairs_; ++pair) pack_rows_pair(row, pair, to);
      return {to};
    }
    const BF16* const values = a_.values + row * a_.stride + first_k_;
    const int64_t whole = part_k_ / kLineValues * kLineValues;
    if (whole == part_k_) return {values, a_.stride, kLineValues};
    pack_rows({values + whole, a_.stride, kPanelSize, part_k_ - whole}, scratch_.last.data());
    return {values, a_.stride, kLineValues, scratch_.last.data()};
  }

  // Makes a part of the product, and stores the one before in the meantime.
  template <typename Meanwhile>
  void multiply(const RowPanel& rows, const BF16* columns, const Meanwhile& meanwhile) {
    const PanelProduct to{result()};
    const int64_t rows_each = divided_up(kPanelSize, pairs_);
    to.clear();
    add_panels(rows, columns, pairs_, [&](int64_t pair) {
      result_.store_until(result_.stored + rows_each);
      meanwhile(pair);
    });
    to.store();
    result_.store_until(kPanelSize);
  }

  float* result() { return scratch_.results[turn_].data(); }

  // Takes what result() has become.
  void begin_storing(int64_t row, int64_t column) {
    const bool add = c_.add || first_k_ > 0;
    float* const to = c_.values + row * c_.stride + column;
    const int64_t columns = std::min(kPanelSize, n_ - column);
    const bool whole_lines = columns == kPanelSize && c_.stride % kTileLines == 0 &&
                             reinterpret_cast<uintptr_t>(to) % kLineBytes == 0;
    result_ = {.from = result(),
               .to = to,
               .stride = c_.stride,
               .rows = std::min(kPanelSize, m_ - row),
               .columns = columns,
               .add = add,
               .past_cache = c_.past_cache && !add && whole_lines};
    turn_ = 1 - turn_;
  }

  int64_t m_, n_, k_;
  const Factor<BF16>& a_;
  const Factor<BF16>& b_;
  const Product& c_;
  Scratch& scratch_ = own_scratch();
  int64_t first_k_ = 0, part_k_ = 0, pairs_ = 0;  // this part of the inner values
  Result result_;
  int turn_ = 0;
};

}  // namespace

void amx_multiply(int64_t m, int64_t n, int64_t k, const Factor<BF16>& a, const Factor<BF16>& b,
                  const Product& c) {
  ThreadProduct(m, n, k, a, b, c).run();
}

void amx_tile_products(int64_t count) {
  const Tiles tiles;
  for (int64_t i = 0; i < count; i += 4) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

}  // namespace farstep

FARSTEP_AMX_CODE_END

#else

namespace farstep {

void amx_multiply(int64_t, int64_t, int64_t, const Factor<BF16>&, const Factor<BF16>&,
                  const Product&) {
  lack_amx();
}
void amx_tile_products(int64_t) {
  lack_amx();
}

}  // namespace farstep

#endif
