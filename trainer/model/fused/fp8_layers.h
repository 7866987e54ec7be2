// The products with FP8 factors, and their recipe.
//
// All three products of the blocks' linear layers take FP8. Weights and inputs are E4M3; gradients
// are E5M2, whose range is wider (Micikevicius et al. 2022). Every matrix has one scale, a power of
// two from its own largest magnitude in the same pass (torchao's tensorwise recipe with current
// scaling). So there is no history for a checkpoint to keep, and the transpose that Hopper's
// products need has the same codes; scales for rows would round a matrix twice. Sums are fp32; on a
// GPU, forward uses the tensor cores' own sums, which have fewer bits. The head, attention, norms,
// residual stream, master weights and AdamW are as with bf16. Pure functions.
#pragma once

#include <array>

#include "trainer/kernels/numbers/fp8.h"
#include "trainer/model/fused/fused_ops.h"

namespace farstep {

// Formats of weights and inputs, and of gradients.
inline constexpr Fp8Format kForwardFormat = Fp8Format::kE4M3;
inline constexpr Fp8Format kGradientFormat = Fp8Format::kE5M2;

// Whether Hopper's FP8 products can take the matrix: both sides are multiples of 16. Other matrices
// are multiplied in bf16 on every device.
inline bool fits_fp8(const MatrixWeight<BF16>& weight) {
  return weight.out % 16 == 0 && weight.in % 16 == 0;
}
// Whether the layer's products take FP8 in this pass.
inline bool takes_fp8(const PassContext<BF16>& context, const MatrixWeight<BF16>& weight) {
  return context.shape.rows() % 16 == 0 && fits_fp8(weight);
}

// Returns the layers of a block in order of their numbers.
inline std::array<MatrixWeight<BF16>, 4> linear_layers(const BlockWeights<BF16>& weights) {
  return {weights.heads, weights.output, weights.gate_up, weights.down};
}

// Throws ConfigError for a GPU whose compute capability is below 8.9, which cannot multiply FP8.
void require_fp8(int major, int minor);

}  // namespace farstep
