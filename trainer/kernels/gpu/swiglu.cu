#include "trainer/kernels/gpu/swiglu.h"

#include "trainer/kernels/gpu/device_code.h"

namespace farstep {

namespace {

template <int n>
__global__ void __launch_bounds__(kMostThreads)
    gate_rows(const BF16* gate_up, int64_t packs, BF16* out) {
  const int64_t pack = own_pack();
  if (pack >= packs) return;
  const int64_t gates = own_row() * 2 * packs + pack;
  const auto gate = load<n>(gate_up, gates);
  const auto up = load<n>(gate_up, gates + packs);
  Pack<BF16, n> own;
  for (int i = 0; i < n; ++i) {
    own[i] = rounded<BF16>(swiglu_value(to_float(gate[i]), to_float(up[i])));
  }
  store<n>(out, own_row() * packs + pack, own);
}

template <int n>
__global__ void __launch_bounds__(kMostThreads)
    differentiate_gates(const BF16* out_gradient, const BF16* gate_up, int64_t packs,
                        BF16* gate_up_gradient, BF16* out) {
  const int64_t pack = own_pack();
  if (pack >= packs) return;
  const int64_t gates = own_row() * 2 * packs + pack;
  auto gate = load<n>(gate_up, gates);
  auto up = load<n>(gate_up, gates + packs);
  auto own = load<n>(out_gradient, own_row() * packs + pack);
  for (int i = 0; i < n; ++i) {
    const auto gradient = swiglu_gradient(to_float(own[i]), to_float(gate[i]), to_float(up[i]));
    own[i] = rounded<BF16>(gradient.out);
    gate[i] = rounded<BF16>(gradient.gate);
    up[i] = rounded<BF16>(gradient.up);
  }
  store<n>(out, own_row() * packs + pack, own);
  store<n>(gate_up_gradient, gates, gate);
  store<n>(gate_up_gradient, gates + packs, up);
}

}  // namespace

cudaError_t launch_swiglu(const BF16* gate_up, int64_t rows, int64_t width, BF16* out,
                          cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const int n = are_packs<8>(width, gate_up, out) ? 8 : 1;
  return launch(n == 8 ? gate_rows<8> : gate_rows<1>, shape_of_rows(rows, width / n), stream,
                gate_up, width / n, out);
}

cudaError_t launch_swiglu_backward(const BF16* out_gradient, const BF16* gate_up, int64_t rows,
                                   int64_t width, BF16* gate_up_gradient, BF16* out,
                                   cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const int n = are_packs<8>(width, out_gradient, gate_up, gate_up_gradient, out) ? 8 : 1;
  return launch(n == 8 ? differentiate_gates<8> : differentiate_gates<1>,
                shape_of_rows(rows, width / n), stream, out_gradient, gate_up, width / n,
                gate_up_gradient, out);
}

}  // namespace farstep
