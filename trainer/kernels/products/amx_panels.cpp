// AMX multiplies tiles of 16 x 32 bf16 values and adds to tiles of 16 x 16 fp32 sums. Four sums,
// two tiles of rows and two of columns fill its eight registers. So a panel has 32 rows and 32
// columns.
#include "trainer/kernels/products/panel_kernels.h"
#include "trainer/kernels/products/x86_code.h"

#if FARSTEP_X86_CODE

#include "trainer/kernels/products/amx_tiles.h"

FARSTEP_AMX_CODE

namespace farstep {

namespace {

void begin() {
  load_tile_config();
}

// Tiles in use make the system save 8 KiB more whenever it changes threads.
void end() {
  _tile_release();
}

// Stores the previous result and fetches the next rows while the matrix unit works.
void multiply(const RowPanel<BF16>& rows, const BF16* columns, int64_t units,
              const PanelResult& product, PanelResult& before, const Ahead& ahead) {
  clear_product();
  add_panels(rows, columns, units, [&](int64_t unit) {
    store_lines(before, rows_due(kPanelSize, unit + 1, units));
    fetch(ahead, unit);
  });
  store_product({product.from});
  store_lines(before, kPanelSize);
}

}  // namespace

const PanelKernels<BF16, BF16>* amx_panels() {
  static constexpr PanelKernels<BF16, BF16> kPanels{
      .instructions = InstructionSet::kAmx,
      .rows = kPanelSize,
      .columns = kPanelSize,
      .part_values = 1408,              // shorter parts pass the result through memory more often
      .block_bytes = int64_t{1} << 20,  // of 2 MiB, which every processor with AMX has
      .takes_rows_as_they_lie = true,
      .begin = begin,
      .end = end,
      .pack_rows = pack_bf16_rows,
      .pack_columns = pack_bf16_columns,
      .multiply = multiply,
      .store = store_lines};
  return &kPanels;
}

// For the benchmark: the unit's peak without memory.
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

FARSTEP_CODE_END

#else

namespace farstep {

const PanelKernels<BF16, BF16>* amx_panels() {
  return nullptr;
}

void amx_tile_products(int64_t) {}

}  // namespace farstep

#endif
