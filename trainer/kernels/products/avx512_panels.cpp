// Sums in fp32 by fused multiply-add. A value of a row is broadcast and multiplied by vectors of
// columns, so that bf16 factors need no more than a shift on the way.
#include "trainer/kernels/products/panel_kernels.h"
#include "trainer/kernels/products/x86_code.h"

#if FARSTEP_X86_CODE

#include <immintrin.h>

#include <algorithm>

#include "trainer/kernels/products/avx512_lines.h"

FARSTEP_AVX512_CODE

namespace farstep {

namespace {

// 8 rows by 48 columns stay in registers: 24 sums, 3 vectors of columns, 1 value of a row.
constexpr int64_t kPanelColumns = 48, kTileRows = 8, kTileColumns = 48;

struct Lanes {
  using Vector = __m512;
  static constexpr int64_t kCount = 16;

  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector all(float x) { return _mm512_set1_ps(x); }
  static Vector load(const float* x) { return _mm512_loadu_ps(x); }
  static Vector load(const BF16* x) {
    const auto bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static void store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
  static void stream(float* to, Vector x) { _mm512_stream_ps(to, x); }
  static Vector add(Vector x, Vector y) { return _mm512_add_ps(x, y); }
  static Vector multiply_add(Vector x, Vector y, Vector z) { return _mm512_fmadd_ps(x, y, z); }

  static __mmask16 first(int64_t count) { return first_of_16(count); }
  static Vector load_first(const float* x, __mmask16 mask) {
    return _mm512_maskz_loadu_ps(mask, x);
  }
  static void store_first(float* to, __mmask16 mask, Vector x) {
    _mm512_mask_storeu_ps(to, mask, x);
  }

  // By the integer code that the bf16 panels have too; a transposition does not look at values.
  static void store_transposed(const Vector (&lines)[kCount], float* to, int64_t stride) {
    __m512i bits[kCount];
    for (int64_t i = 0; i < kCount; ++i) bits[i] = _mm512_castps_si512(lines[i]);
    farstep::store_transposed(bits, [&](int64_t i) { return to + i * stride; });
  }
};

#include "trainer/kernels/products/fp32_panels.h"

}  // namespace

template <typename T>
const PanelKernels<T, float>* avx512_panels() {
  static constexpr auto kPanels = fp32_panels<T>(InstructionSet::kAvx512);
  return &kPanels;
}

}  // namespace farstep

FARSTEP_CODE_END

#else

namespace farstep {

template <typename T>
const PanelKernels<T, float>* avx512_panels() {
  return nullptr;
}

}  // namespace farstep

#endif

namespace farstep {

template const PanelKernels<float, float>* avx512_panels();
template const PanelKernels<BF16, float>* avx512_panels();

}  // namespace farstep
