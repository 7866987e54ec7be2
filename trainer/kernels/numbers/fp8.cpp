// FP8 is emulated where the processor lacks it: values are rounded to what FP8 can hold and stay
// bf16. So training on a CPU loses the digits that it would lose on a GPU, at the speed of bf16.
#include "trainer/kernels/numbers/fp8.h"

#include "trainer/base/processor/vector_dispatch.h"

namespace farstep {

namespace {

// The scale is a power of two, so only the rounding to FP8 loses bits.
template <Fp8Format format>
inline void round_values(const BF16* x, int64_t size, Fp8Scale scale, BF16* y) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    const float value = fp8_value<format>(fp8_code<format>(to_float(x[i]) * scale.factor));
    y[i] = rounded<BF16>(value * scale.inverse);
  }
}

// As bits: magnitudes order like integers, and the GPU has an atomic maximum of integers only.
inline uint32_t largest_bits(const BF16* x, int64_t size) {
  uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < size; ++i) largest = std::max(largest, magnitude_bits(x[i]));
  return largest;
}

}  // namespace

uint32_t largest_magnitude_bits(const BF16* x, int64_t size) {
  return run_vector_code<largest_bits>(x, size);
}

void round_to_fp8(Fp8Format format, const BF16* x, int64_t size, uint32_t largest, BF16* y) {
  // The format is known before the loop, so that each loop has its constants.
  if (format == Fp8Format::kE4M3) {
    run_vector_code<round_values<Fp8Format::kE4M3>>(x, size, fp8_scale<Fp8Format::kE4M3>(largest),
                                                    y);
  } else {
    run_vector_code<round_values<Fp8Format::kE5M2>>(x, size, fp8_scale<Fp8Format::kE5M2>(largest),
                                                    y);
  }
}

}  // namespace farstep
