// As avx512_panels.cpp with half as wide vectors and half as many registers, so a tile is smaller.
#include "trainer/kernels/products/panel_kernels.h"
#include "trainer/kernels/products/x86_code.h"

#if FARSTEP_X86_CODE

#include <immintrin.h>

#include <algorithm>

FARSTEP_AVX2_CODE

namespace farstep {

namespace {

// 4 rows by 24 columns fill the 16 registers: 12 sums, 3 vectors of columns, 1 value of a row.
constexpr int64_t kPanelColumns = 48, kTileRows = 4, kTileColumns = 24;

struct Lanes {
  using Vector = __m256;
  static constexpr int64_t kCount = 8;

  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector all(float x) { return _mm256_set1_ps(x); }
  static Vector load(const float* x) { return _mm256_loadu_ps(x); }
  static Vector load(const BF16* x) {
    const auto bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    // bf16 is the upper half of fp32, so a shift converts.
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static void store(float* to, Vector x) { _mm256_storeu_ps(to, x); }
  static void stream(float* to, Vector x) { _mm256_stream_ps(to, x); }
  static Vector add(Vector x, Vector y) { return _mm256_add_ps(x, y); }
  static Vector multiply_add(Vector x, Vector y, Vector z) { return _mm256_fmadd_ps(x, y, z); }

  // Masks have the form that AVX2's masked moves want: the upper bit of each lane.
  static __m256i first(int64_t count) {
    const auto limit = _mm256_set1_epi32(static_cast<int>(std::min(count, kCount)));
    return _mm256_cmpgt_epi32(limit, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Vector load_first(const float* x, __m256i mask) { return _mm256_maskload_ps(x, mask); }
  static void store_first(float* to, __m256i mask, Vector x) { _mm256_maskstore_ps(to, mask, x); }

  static void store_transposed(const Vector (&lines)[kCount], float* to, int64_t stride) {
    Vector pairs[kCount], quads[kCount];
    for (int64_t i = 0; i < kCount; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(lines[i], lines[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(lines[i], lines[i + 1]);
    }
    // Now line i + j has column j of four lines, and column j + 4 in its upper half.
    for (int64_t i = 0; i < kCount; i += 4) {
      quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
      quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int64_t i = 0; i < 4; ++i) {
      store(to + i * stride, _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20));
      store(to + (i + 4) * stride, _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31));
    }
  }
};

#include "trainer/kernels/products/fp32_panels.h"

}  // namespace

template <typename T>
const PanelKernels<T, float>* avx2_panels() {
  static constexpr auto kPanels = fp32_panels<T>(InstructionSet::kAvx2);
  return &kPanels;
}

}  // namespace farstep

FARSTEP_CODE_END

#else

namespace farstep {

template <typename T>
const PanelKernels<T, float>* avx2_panels() {
  return nullptr;
}

}  // namespace farstep

#endif

namespace farstep {

template const PanelKernels<float, float>* avx2_panels();
template const PanelKernels<BF16, float>* avx2_panels();

}  // namespace farstep
