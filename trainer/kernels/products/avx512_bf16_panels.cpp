// Products of bf16 pairs in vectors: an instruction multiplies 32 values and adds neighbouring
// products to 16 sums. It uses the packing of the AMX panels.
#include "trainer/kernels/products/panel_kernels.h"
#include "trainer/kernels/products/x86_code.h"

#if FARSTEP_X86_CODE

#include "trainer/kernels/products/avx512_bf16_tiles.h"

FARSTEP_AVX512_BF16_CODE

namespace farstep {

namespace {

// These instructions need no configuration of tiles.
void nothing() {}

// As with AMX, storing and fetching are spread over the computation. The result's memory is fetched
// first, because its stores begin at once.
void multiply(const RowPanel<BF16>& rows, const BF16* columns, int64_t units,
              const PanelResult& product, PanelResult& before, const Ahead& ahead) {
  fetch(before);
  multiply_square(rows, columns, units, /*begins=*/true, {product.from}, [&](int64_t step) {
    store_lines(before, rows_due(kPanelSize, step + 1, kGroups * units));
    if (step % kGroups == 0) fetch(ahead, step / kGroups);
  });
}

}  // namespace

const PanelKernels<BF16, BF16>* avx512_bf16_panels() {
  static constexpr PanelKernels<BF16, BF16> kPanels{
      .instructions = InstructionSet::kAvx512Bf16,
      .rows = kPanelSize,
      .columns = kPanelSize,
      .part_values = 1408,               // as for AMX; 1,024 was not faster
      .block_bytes = int64_t{11} << 16,  // of a second-level cache of 1 MiB (Zen 4, Cooper Lake)
      .takes_rows_as_they_lie = false,   // rows a power of two apart share few sets of the cache
      .begin = nothing,
      .end = nothing,
      .pack_rows = pack_bf16_rows,
      .pack_columns = pack_bf16_columns,
      .multiply = multiply,
      .store = store_lines};
  return &kPanels;
}

}  // namespace farstep

FARSTEP_CODE_END

#else

namespace farstep {

const PanelKernels<BF16, BF16>* avx512_bf16_panels() {
  return nullptr;
}

}  // namespace farstep

#endif
