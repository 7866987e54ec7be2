#include "trainer/kernels/products/panel_product.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>

namespace farstep {

namespace {

// Panels that pass a block are packed in pieces of at most this size, so that the scratch stays
// small. With the block it is 4 MiB: two huge pages.
constexpr int64_t kPassingBytes = int64_t{3} << 20;
// At least the block_bytes of all kernels.
constexpr int64_t kMostBlockBytes = int64_t{1} << 20;
// A block with fewer panels leaves too little time to fetch rows that are not packed. No
// measurement chose the number.
constexpr int64_t kLeastFetching = 8;
// Packing fetches its input this far ahead: 4 units of 2 or 4 KiB hide the latency of memory.
constexpr int64_t kUnitsAhead = 4;

constexpr int64_t divided_up(int64_t x, int64_t by) {
  return (x + by - 1) / by;
}

// Returns the size of equal pieces of at most `most`, as a multiple of `unit`. Full pieces would
// leave a small last one, which packs as much of the other factor for less work.
constexpr int64_t piece_of(int64_t size, int64_t most, int64_t unit) {
  const int64_t pieces = divided_up(size, std::max(most / unit * unit, unit));
  return divided_up(divided_up(size, pieces), unit) * unit;
}

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

struct alignas(kHugePageBytes) Scratch {
  struct Panels {
    std::array<std::byte, kMostBlockBytes> block;
    std::array<std::byte, kPassingBytes> passing;
  } panels;
  alignas(kLineBytes) std::array<std::byte, kLongestPanel * kUnitValues * sizeof(float)> last;
  std::array<std::array<float, kLongestPanel * kLongestPanel>, 2> results;
};

// Asks for huge pages for the panels. A block fills half of the second-level cache; in small pages,
// too many of them could fall into the same sets.
std::unique_ptr<Scratch> new_scratch() {
  std::unique_ptr<Scratch> scratch(new Scratch);
  static_assert(sizeof(Scratch::Panels) % kHugePageBytes == 0);  // wastes no memory
  madvise(&scratch->panels, sizeof(Scratch::Panels), MADV_HUGEPAGE);
  return scratch;
}

// Kept by each thread, as touching new memory costs more than a small product.
Scratch& own_scratch() {
  thread_local const auto scratch = new_scratch();
  return *scratch;
}

// One factor, divided into panels of rows or columns.
template <typename T, typename P>
struct Side {
  Factor<T> factor;
  bool has_inner_lines;  // its lines in memory are inner values
  int64_t size, panel;
  void (*pack)(const Rectangle<T>& from, bool transposed, P* to);

  int64_t unit() const { return panel * kUnitValues; }
};

// The scheme of Goto and van de Geijn 2008, for one level of the cache. One factor's panels are
// packed as a block, which stays in the second-level cache while the other factor's panels pass.
// Usually a block of columns stays, and rows pass, in place or packed. If the first factor is
// transposed (gradients of weights), a block of rows stays and columns pass.
template <typename T, typename P>
class ThreadProduct {
 public:
  ThreadProduct(const PanelKernels<T, P>& kernels, int64_t m, int64_t n, int64_t k,
                const Factor<T>& a, const Factor<T>& b, const Product& c)
      : kernels_(kernels),
        rows_{a, a.transposed, m, kernels.rows, kernels.pack_rows},
        columns_{b, !b.transposed, n, kernels.columns, kernels.pack_columns},
        k_(k),
        c_(c) {}

  // Inner values come in parts, which bound the length of panels. Later parts add to the result.
  void run() {
    kernels_.begin();
    const int64_t part = piece_of(k_, kernels_.part_values, kUnitValues);
    for (first_k_ = 0; first_k_ < k_; first_k_ += part) {
      part_k_ = std::min(part, k_ - first_k_);
      units_ = divided_up(part_k_, kUnitValues);
      if (rows_.factor.transposed) {
        columns_pass();
      } else if (takes_rows_as_they_lie()) {
        rows_pass(0, divided_up(rows_.size, rows_.panel));
      } else {
        for_blocks(rows_, kPassingBytes, [this](int64_t first, int64_t panels) {
          pack_block(rows_, first, panels, passing());
          rows_pass(first, panels);
        });
      }
    }
    // The last product has no next one to be stored with.
    kernels_.store(result_, kernels_.rows);
    // Makes the stores past the caches visible to other threads in the order of ordinary stores.
    if (c_.past_cache) __builtin_ia32_sfence();
    kernels_.end();
  }

 private:
  // Each block of columns stays in the cache while all rows pass. A product is stored while the
  // next one is computed.
  void rows_pass(int64_t first_row, int64_t passing) {
    for_blocks(columns_, kernels_.block_bytes, [&](int64_t first, int64_t panels) {
      pack_block(columns_, first, panels, block());
      for (int64_t row = 0; row < passing; ++row) {
        const auto rows = row_panel(row);
        for (int64_t i = 0; i < panels; ++i) {
          const auto ahead = row + 1 < passing ? ahead_of(row + 1, i, panels) : Ahead{};
          multiply(rows, panel_at(columns_, block(), i),
                   result_at(first_row + row * rows_.panel, first + i * columns_.panel), ahead);
        }
      }
    });
  }

  // The rows of a transposed first factor are columns in memory. So blocks of rows are packed, and
  // packed columns pass them.
  void columns_pass() {
    for_blocks(columns_, kPassingBytes, [&](int64_t first_column, int64_t passing) {
      pack_block(columns_, first_column, passing, this->passing());
      for_blocks(rows_, kernels_.block_bytes, [&](int64_t first, int64_t panels) {
        pack_block(rows_, first, panels, block());
        for (int64_t column = 0; column < passing; ++column) {
          const P* const columns = panel_at(columns_, this->passing(), column);
          for (int64_t i = 0; i < panels; ++i) {
            multiply(packed_rows(block(), i), columns,
                     result_at(first + i * rows_.panel, first_column + column * columns_.panel),
                     {});
          }
        }
      });
    });
  }

  // Calls task(first, panels) for blocks of a side with at most `bytes` each.
  template <typename Task>
  void for_blocks(const Side<T, P>& side, int64_t bytes, const Task& task) const {
    const int64_t values = bytes / int64_t{sizeof(P)};
    const int64_t block = piece_of(side.size, values / (units_ * kUnitValues), side.panel);
    for (int64_t first = 0; first < side.size; first += block) {
      task(first, divided_up(std::min(block, side.size - first), side.panel));
    }
  }

  P* block() const { return reinterpret_cast<P*>(scratch_.panels.block.data()); }
  P* passing() const { return reinterpret_cast<P*>(scratch_.panels.passing.data()); }
  P* panel_at(const Side<T, P>& side, P* panels, int64_t i) const {
    return panels + i * units_ * side.unit();
  }
  RowPanel<P> packed_rows(P* panels, int64_t i) const {
    return {panel_at(rows_, panels, i), kUnitValues, rows_.unit()};
  }

  // Packs panels in the order of memory: through inner values first where they are the lines.
  // Fetches input ahead.
  void pack_block(const Side<T, P>& side, int64_t first, int64_t panels, P* to) const {
    const auto panel_of = [&](int64_t i) { return side.has_inner_lines ? i % panels : i / units_; };
    const auto unit_of = [&](int64_t i) { return side.has_inner_lines ? i / panels : i % units_; };
    const auto from = [&](int64_t i) {
      return rectangle(side, first + panel_of(i) * side.panel, unit_of(i));
    };
    const int64_t count = panels * units_;
    for (int64_t i = 0; i < count; ++i) {
      if (i + kUnitsAhead < count) fetch_lines(from(i + kUnitsAhead));
      side.pack(from(i), side.factor.transposed,
                panel_at(side, to, panel_of(i)) + unit_of(i) * side.unit());
    }
  }

  static void fetch_lines(const Rectangle<T>& from) {
    fetch({.values = from.values,
           .stride_bytes = from.stride * int64_t{sizeof(T)},
           .line_bytes = from.columns * int64_t{sizeof(T)},
           .lines = from.lines},
          /*unit=*/0);
  }

  // Returns one unit of the rows or columns from `first` on.
  Rectangle<T> rectangle(const Side<T, P>& side, int64_t first, int64_t unit) const {
    const int64_t k = unit * kUnitValues, inner = std::min(kUnitValues, part_k_ - k);
    const int64_t from_k = first_k_ + k, size = std::min(side.panel, side.size - first);
    const auto& factor = side.factor;
    if (side.has_inner_lines)
      return {factor.values + from_k * factor.stride + first, factor.stride, inner, size};
    return {factor.values + first * factor.stride + from_k, factor.stride, size, inner};
  }

  bool takes_rows_as_they_lie() const {
    return std::is_same_v<T, P> && kernels_.takes_rows_as_they_lie;
  }

  // Returns the i-th panel of the rows that pass.
  RowPanel<P> row_panel(int64_t i) {
    if constexpr (std::is_same_v<T, P>) {
      if (kernels_.takes_rows_as_they_lie) return rows_in_place(i * rows_.panel);
    }
    return packed_rows(passing(), i);
  }

  RowPanel<P> rows_in_place(int64_t row) {
    // A panel without all rows is packed, as the kernels read whole panels.
    if (row + rows_.panel > rows_.size) {
      pack_block(rows_, row, /*panels=*/1, passing());
      return packed_rows(passing(), 0);
    }
    const P* const values = rows_.factor.values + row * rows_.factor.stride + first_k_;
    if (part_k_ % kUnitValues == 0) return {values, rows_.factor.stride, kUnitValues};
    P* const last = reinterpret_cast<P*>(scratch_.last.data());
    rows_.pack(rectangle(rows_, row, units_ - 1), /*transposed=*/false, last);
    return {values, rows_.factor.stride, kUnitValues, last};
  }

  // Returns the part of the next rows to fetch during the i-th panel. Rows in place are fetched
  // only if a block has enough panels.
  Ahead ahead_of(int64_t next, int64_t i, int64_t panels) const {
    const int64_t row = rows_.panel * i / panels, end = rows_.panel * (i + 1) / panels;
    constexpr int64_t kLine = kUnitValues * int64_t{sizeof(P)};
    if (!takes_rows_as_they_lie()) {
      const P* const values = packed_rows(passing(), next).values + row * kUnitValues;
      return {values, kLine, kLine, end - row, rows_.panel * kLine};
    }
    const int64_t first = next * rows_.panel;
    if (first + rows_.panel > rows_.size || panels < kLeastFetching) return {};
    const auto& factor = rows_.factor;
    return {factor.values + (first + row) * factor.stride + first_k_,
            factor.stride * int64_t{sizeof(T)}, kLine, end - row, kLine};
  }

  // Computes a part of the product and stores the one before. Storing overlaps with computing,
  // hence the two results that take turns.
  void multiply(const RowPanel<P>& rows, const P* columns, const PanelResult& result,
                const Ahead& ahead) {
    kernels_.multiply(rows, columns, units_, result, result_, ahead);
    result_ = result;
    turn_ = 1 - turn_;
  }

  // Returns where the product of the panels that begin there is made and stored.
  PanelResult result_at(int64_t row, int64_t column) {
    // The first part may replace what was there; later parts must add.
    const bool add = c_.add || first_k_ > 0;
    float* const to = c_.values + row * c_.stride + column;
    const int64_t columns = std::min(columns_.panel, columns_.size - column);
    // A store past the caches must fill whole cache lines.
    const bool whole_lines = columns == columns_.panel &&
                             c_.stride * int64_t{sizeof(float)} % kLineBytes == 0 &&
                             reinterpret_cast<uintptr_t>(to) % kLineBytes == 0;
    return {.from = scratch_.results[turn_].data(),
            .to = to,
            .stride = c_.stride,
            .rows = std::min(rows_.panel, rows_.size - row),
            .columns = columns,
            .add = add,
            .past_cache = c_.past_cache && !add && whole_lines};
  }

  const PanelKernels<T, P>& kernels_;
  Side<T, P> rows_, columns_;
  int64_t k_;
  const Product& c_;
  Scratch& scratch_ = own_scratch();
  int64_t first_k_ = 0, part_k_ = 0, units_ = 0;  // this part of the inner values
  PanelResult result_;                            // is being stored
  std::size_t turn_ = 0;
};

}  // namespace

template <typename T, typename P>
void multiply_panels(const PanelKernels<T, P>& kernels, int64_t m, int64_t n, int64_t k,
                     const Factor<T>& a, const Factor<T>& b, const Product& c) {
  ThreadProduct<T, P>(kernels, m, n, k, a, b, c).run();
}

template void multiply_panels(const PanelKernels<BF16, BF16>&, int64_t, int64_t, int64_t,
                              const Factor<BF16>&, const Factor<BF16>&, const Product&);
template void multiply_panels(const PanelKernels<BF16, float>&, int64_t, int64_t, int64_t,
                              const Factor<BF16>&, const Factor<BF16>&, const Product&);
template void multiply_panels(const PanelKernels<float, float>&, int64_t, int64_t, int64_t,
                              const Factor<float>&, const Factor<float>&, const Product&);

}  // namespace farstep
