// A pair is a value and the one half a head later, as in Hugging Face's LLaMA. Loops over the two
// halves then read contiguous memory.
#include "trainer/kernels/rotary.h"

#include "trainer/base/processor/vector_dispatch.h"
#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/numbers/vector_code.h"

namespace farstep {

namespace {

// All heads of a row share the cosines and sines of its position. Backward negates the sines.
template <typename T>
inline void rotate_rows(const RotaryRows& shape, float sign, const float* from, int64_t begin,
                        int64_t end, T* to) {
  const int64_t half = shape.head_size / 2;
  const int64_t others = shape.other_heads * shape.head_size;
  for (int64_t row = begin; row < end; ++row) {
    const float* const cosines = shape.cosines + row % shape.sequence_length * half;
    const float* const sines = shape.sines + row % shape.sequence_length * half;
    const float* x = from + row * shape.width();
    T* y = to + row * shape.width();
    for (int64_t head = 0; head < shape.rotated_heads; ++head) {
      // The next row's head. Without it the rotation reached 0.83 of a copy's speed instead of 1.
      prefetch(x + shape.width(), shape.head_size);
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const auto pair = rotated_pair(x[i], x[i + half], cosines[i], sign * sines[i]);
        y[i] = rounded<T>(pair.first);
        y[i + half] = rounded<T>(pair.second);
      }
      x += shape.head_size;
      y += shape.head_size;
    }
#pragma omp simd
    for (int64_t i = 0; i < others; ++i) y[i] = rounded<T>(x[i]);
  }
}

float sign_of(Rotation rotation) {
  return rotation == Rotation::kForward ? 1.0F : -1.0F;
}

}  // namespace

void rotate(const RotaryRows& shape, Rotation rotation, const float* from, int64_t begin,
            int64_t end, BF16* to) {
  run_vector_code<rotate_rows<BF16>>(shape, sign_of(rotation), from, begin, end, to);
}

void rotate(const RotaryRows& shape, Rotation rotation, const float* from, int64_t begin,
            int64_t end, float* to) {
  run_vector_code<rotate_rows<float>>(shape, sign_of(rotation), from, begin, end, to);
}

}  // namespace farstep
