// Which products take FP8 factors, and how.
//
// The recipe: the linear layers of the blocks, in all three of their products. Weights and inputs
// are E4M3, gradients E5M2, which have the wider range that gradients need (Micikevicius et al.
// 2022). Every matrix has one scale, a power of two from its own largest magnitude in the same pass
// (torchao's tensorwise recipe with current scaling): no history that a checkpoint would have to
// keep, and the transpose that Hopper's products need has the same codes, where a scale a row would
// round a matrix twice. Sums are fp32; on a GPU the tensor cores' own, of fewer bits, forward.
// Head, attention, norms, the residual stream, master weights and AdamW are those of bf16. Pure
// functions.
#pragma once

#include <array>

#include "trainer/kernels/fp8.h"
#include "trainer/model/fused_ops.h"

namespace farstep {

// Formats of weights and inputs, and of gradients.
inline constexpr Fp8Format kForwardFormat = Fp8Format::kE4M3;
inline constexpr Fp8Format kGradientFormat = Fp8Format::kE5M2;

// Whether Hopper's products take the matrix, whose sides then are multiples of 16; what they do not
// take is multiplied in bf16, on every device.
inline bool fits_fp8(const MatrixWeight<BF16>& weight) {
  return weight.out % 16 == 0 && weight.in % 16 == 0;
}
// Whether they take the layer's products in this pass.
inline bool takes_fp8(const PassContext<BF16>& context, const MatrixWeight<BF16>& weight) {
  return context.shape.rows() % 16 == 0 && fits_fp8(weight);
}

// The layers of a block, in the order of their numbers.
inline std::array<MatrixWeight<BF16>, 4> linear_layers(const BlockWeights<BF16>& weights) {
  return {weights.heads, weights.output, weights.gate_up, weights.down};
}

// Throws ConfigError unless GPUs of that compute capability multiply FP8: 8.9 and more.
void require_fp8(int major, int minor);

}  // namespace farstep
