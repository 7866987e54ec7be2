// A pass over memory: each thread reads a pack of 16 bytes of gate and of up, and writes one.
#include "trainer/kernels/gpu/swiglu.h"

#include "trainer/kernels/gpu/device_code.h"
#include "trainer/kernels/gpu/largest_magnitude.h"

namespace farstep {

namespace {

template <int n>
__device__ uint32_t largest_of_pack(const Pack<BF16, n>& pack) {
  uint32_t largest = 0;
  for (int i = 0; i < n; ++i) largest = larger_of(largest, magnitude_bits(pack[i]));
  return largest;
}

// Threads beyond the row stay until the end, because all must take part in raise_to_largest().
template <int n>
__global__ void __launch_bounds__(kMostThreads)
    gate_rows(const BF16* gate_up, int64_t packs, BF16* out, uint32_t* largest) {
  const int64_t pack = own_pack();
  uint32_t own_largest = 0;
  if (pack < packs) {
    const int64_t gates = own_row() * 2 * packs + pack;
    const auto gate = load<n>(gate_up, gates);
    const auto up = load<n>(gate_up, gates + packs);
    Pack<BF16, n> own;
    for (int i = 0; i < n; ++i) {
      own[i] = rounded<BF16>(swiglu_value(to_float(gate[i]), to_float(up[i])));
    }
    store<n>(out, own_row() * packs + pack, own);
    own_largest = largest_of_pack(own);
  }
  if (largest != nullptr) raise_to_largest(own_largest, largest);
}

template <int n>
__global__ void __launch_bounds__(kMostThreads)
    differentiate_gates(SwigluBackward swiglu, int64_t packs) {
  const int64_t pack = own_pack();
  uint32_t own_largest = 0;
  if (pack < packs) {
    const int64_t gates = own_row() * 2 * packs + pack;
    auto gate = load<n>(swiglu.gate_up, gates);
    auto up = load<n>(swiglu.gate_up, gates + packs);
    const auto own = load<n>(swiglu.out_gradient, own_row() * packs + pack);
    for (int i = 0; i < n; ++i) {
      const auto gradient = swiglu_gradient(to_float(own[i]), to_float(gate[i]), to_float(up[i]));
      gate[i] = rounded<BF16>(gradient.gate);
      up[i] = rounded<BF16>(gradient.up);
    }
    store<n>(swiglu.gate_up_gradient, gates, gate);
    store<n>(swiglu.gate_up_gradient, gates + packs, up);
    own_largest = larger_of(largest_of_pack(gate), largest_of_pack(up));
  }
  if (swiglu.largest != nullptr) raise_to_largest(own_largest, swiglu.largest);
}

}  // namespace

cudaError_t launch_swiglu(const BF16* gate_up, int64_t rows, int64_t width, BF16* out,
                          uint32_t* largest, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  // The widths of all presets are multiples of a pack. Others go value by value.
  const int n = are_packs<8>(width, gate_up, out) ? 8 : 1;
  return launch(n == 8 ? gate_rows<8> : gate_rows<1>, shape_of_rows(rows, width / n), stream,
                gate_up, width / n, out, largest);
}

cudaError_t launch_swiglu_backward(const SwigluBackward& swiglu, cudaStream_t stream) {
  if (swiglu.rows == 0) return cudaSuccess;
  const bool packs =
      are_packs<8>(swiglu.width, swiglu.out_gradient, swiglu.gate_up, swiglu.gate_up_gradient);
  const int64_t count = swiglu.width / (packs ? 8 : 1);
  return launch(packs ? differentiate_gates<8> : differentiate_gates<1>,
                shape_of_rows(swiglu.rows, count), stream, swiglu, count);
}

}  // namespace farstep
