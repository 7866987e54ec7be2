#include "trainer/kernels/swiglu.h"

#include "trainer/kernels/vector_code.h"

namespace farstep {

namespace {

inline float sigmoid(float x) {
  return 1.0F / (1.0F + vector_exp(-x));
}

template <typename T>
inline void differentiate(const float* out_gradient, const T* kept, int64_t rows, int64_t width,
                          T* gate_up_gradient, T* out) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const d_out = out_gradient + row * width;
    const T* const gates = kept + row * 2 * width;
    T* const d_gates = gate_up_gradient + row * 2 * width;
    T* const outs = out + row * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float gate = to_float(gates[i]);
      const float up = to_float(gates[i + width]);
      const float share = sigmoid(gate);
      const float silu = gate * share;
      outs[i] = rounded<T>(silu * up);
      d_gates[i] = rounded<T>(d_out[i] * up * (share + silu * (1.0F - share)));
      d_gates[i + width] = rounded<T>(d_out[i] * silu);
    }
  }
}

}  // namespace

FARSTEP_VECTOR_CODE
void swiglu(const float* gate_up, int64_t rows, int64_t width, BF16* kept, BF16* out) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = gate_up + row * 2 * width;
    BF16* const gates = kept + row * 2 * width;
    BF16* const outs = out + row * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      gates[i] = rounded<BF16>(from[i]);
      gates[i + width] = rounded<BF16>(from[i + width]);
      const float gate = to_float(gates[i]);
      outs[i] = rounded<BF16>(gate * sigmoid(gate) * to_float(gates[i + width]));
    }
  }
}

FARSTEP_VECTOR_CODE
void swiglu(const float* gate_up, int64_t rows, int64_t width, float* out) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const gates = gate_up + row * 2 * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      out[row * width + i] = gates[i] * sigmoid(gates[i]) * gates[i + width];
    }
  }
}

FARSTEP_VECTOR_CODE
void swiglu_backward(const float* out_gradient, const BF16* kept, int64_t rows, int64_t width,
                     BF16* gate_up_gradient, BF16* out) {
  differentiate(out_gradient, kept, rows, width, gate_up_gradient, out);
}

FARSTEP_VECTOR_CODE
void swiglu_backward(const float* out_gradient, const float* kept, int64_t rows, int64_t width,
                     float* gate_up_gradient, float* out) {
  differentiate(out_gradient, kept, rows, width, gate_up_gradient, out);
}

}  // namespace farstep
