// SwiGLU (Shazeer 2020): silu(gate) * up, of a product that has gates and ups side by side in each
// row.
#include "trainer/kernels/swiglu.h"

#include <algorithm>

#include "trainer/base/processor/vector_dispatch.h"
#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/numbers/vector_code.h"

namespace farstep {

namespace {

// Values in one inner loop; the values of two loops later are fetched meanwhile. The processor's
// own prefetching asks too late.
constexpr int64_t kBlock = 128;

// Backward is bound by memory, hence the prefetching and the recomputed output. Keeping the output
// would take an array of rows times width for each block of the model.
template <typename T>
inline void differentiate(const float* out_gradient, const T* kept, int64_t rows, int64_t width,
                          T* gate_up_gradient, T* out) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const d_out = out_gradient + row * width;
    const T* const gates = kept + row * 2 * width;
    T* const d_gates = gate_up_gradient + row * 2 * width;
    T* const outs = out + row * width;
    for (int64_t begin = 0; begin < width; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, width), next = begin + 2 * kBlock;
      prefetch(d_out + next, kBlock);
      prefetch(gates + next, kBlock);
      prefetch(gates + next + width, kBlock);
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const auto gradient =
            swiglu_gradient(d_out[i], to_float(gates[i]), to_float(gates[i + width]));
        outs[i] = rounded<T>(gradient.out);
        d_gates[i] = rounded<T>(gradient.gate);
        d_gates[i + width] = rounded<T>(gradient.up);
      }
    }
  }
}

// Computes `out` from the rounded gate and up, because backward starts from these.
inline void gate_and_round(const float* gate_up, int64_t rows, int64_t width, BF16* kept,
                           BF16* out) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = gate_up + row * 2 * width;
    BF16* const gates = kept + row * 2 * width;
    BF16* const outs = out + row * width;
    for (int64_t begin = 0; begin < width; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, width), next = begin + 2 * kBlock;
      prefetch(from + next, kBlock);
      prefetch(from + next + width, kBlock);
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        gates[i] = rounded<BF16>(from[i]);
        gates[i + width] = rounded<BF16>(from[i + width]);
        outs[i] = rounded<BF16>(swiglu_value(to_float(gates[i]), to_float(gates[i + width])));
      }
    }
  }
}

inline void gate(const float* gate_up, int64_t rows, int64_t width, float* out) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const gates = gate_up + row * 2 * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      out[row * width + i] = swiglu_value(gates[i], gates[i + width]);
    }
  }
}

}  // namespace

void swiglu(const float* gate_up, int64_t rows, int64_t width, BF16* kept, BF16* out) {
  run_vector_code<gate_and_round>(gate_up, rows, width, kept, out);
}

void swiglu(const float* gate_up, int64_t rows, int64_t width, float* out) {
  run_vector_code<gate>(gate_up, rows, width, out);
}

void swiglu_backward(const float* out_gradient, const BF16* kept, int64_t rows, int64_t width,
                     BF16* gate_up_gradient, BF16* out) {
  run_vector_code<differentiate<BF16>>(out_gradient, kept, rows, width, gate_up_gradient, out);
}

void swiglu_backward(const float* out_gradient, const float* kept, int64_t rows, int64_t width,
                     float* gate_up_gradient, float* out) {
  run_vector_code<differentiate<float>>(out_gradient, kept, rows, width, gate_up_gradient, out);
}

}  // namespace farstep
