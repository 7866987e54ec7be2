#include "trainer/model/fp8_gpu_ops.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/cuda/cuda_check.h"
#include "trainer/model/fp8_layers.h"

namespace farstep {

namespace {

Fp8Factor along_rows(const Fp8Matrix& matrix, Fp8Format format) {
  return {matrix.codes, matrix.inverse_scale, format};
}
Fp8Factor along_columns(const Fp8Matrix& matrix, Fp8Format format) {
  return {matrix.transposed, matrix.inverse_scale, format};
}

}  // namespace

int64_t Fp8GpuOps::scratch_bytes() const {
  return GpuOps::scratch_bytes() + weights_arena_.bytes() + arena_.bytes();
}

void Fp8GpuOps::begin(const Context& context, const FusedWeights<BF16>& weights) {
  GpuOps::begin(context, weights);
  const auto& config = context.config;
  const int64_t rows = context.shape.rows();
  scratch_ = arena_.cut([&](ArenaCutter& cutter) {
    Scratch scratch;
    cutter.cut(scratch.input.codes, rows * std::max(config.hidden, config.intermediate));
    cutter.cut(scratch.input.inverse_scale, 1);
    const int64_t gradients = rows * std::max(context.shape.width(), 2 * config.intermediate);
    cutter.cut(scratch.gradient.codes, gradients);
    cutter.cut(scratch.gradient.transposed, gradients);
    cutter.cut(scratch.gradient.inverse_scale, 1);
    cutter.cut(scratch.parts, kFp8Parts);
    return scratch;
  });
  converted_ = nullptr;
  // Once a step: the micro-batches after the first add to its gradients.
  if (context.add && version_ == weights.version) return;
  convert_weights(weights);
  version_ = weights.version;
}

void Fp8GpuOps::convert_weights(const FusedWeights<BF16>& weights) {
  weights_ = weights_arena_.cut([&](ArenaCutter& cutter) {
    std::vector<Fp8Matrix> matrices;
    for (const auto& block : weights.blocks) {
      for (const auto& weight : linear_layers(block)) {
        auto& matrix = matrices.emplace_back();
        cutter.cut(matrix.codes, weight.out * weight.in);
        cutter.cut(matrix.transposed, weight.out * weight.in);
        cutter.cut(matrix.inverse_scale, 1);
      }
    }
    return matrices;
  });
  for (const auto& block : weights.blocks) {
    for (const auto& weight : linear_layers(block)) {
      if (!fits_fp8(weight)) continue;
      convert(kForwardFormat, weight.values, weight.out, weight.in,
              weights_[static_cast<std::size_t>(weight.number)]);
    }
  }
}

void Fp8GpuOps::convert(Fp8Format format, const BF16* x, int64_t rows, int64_t columns,
                        const Fp8Matrix& to) {
  FARSTEP_CUDA_CHECK(launch_to_fp8(format, x, rows, columns, scratch_.parts, to, stream()));
}

void Fp8GpuOps::forward_product(const Context& context, const MatrixWeight<BF16>& weight,
                                const BF16* x, const GpuProduct& y) {
  if (!takes_fp8(context, weight)) return GpuOps::forward_product(context, weight, x, y);
  const int64_t rows = context.shape.rows();
  convert(kForwardFormat, x, rows, weight.in, scratch_.input);
  gpu_multiply_fp8(device(), rows, weight.out, weight.in,
                   along_rows(scratch_.input, kForwardFormat),
                   along_rows(weights_[static_cast<std::size_t>(weight.number)], kForwardFormat),
                   /*fast=*/true, y);
}

void Fp8GpuOps::input_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                       const BF16* y_gradient, const GpuProduct& x_gradient) {
  if (!takes_fp8(context, weight)) {
    return GpuOps::input_gradient_product(context, weight, y_gradient, x_gradient);
  }
  const int64_t rows = context.shape.rows();
  convert(kGradientFormat, y_gradient, rows, weight.out, scratch_.gradient);
  converted_ = y_gradient;
  gpu_multiply_fp8(device(), rows, weight.in, weight.out,
                   along_rows(scratch_.gradient, kGradientFormat),
                   along_columns(weights_[static_cast<std::size_t>(weight.number)], kForwardFormat),
                   /*fast=*/false, x_gradient);
}

void Fp8GpuOps::weight_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                        const BF16* y_gradient, const BF16* x) {
  if (!takes_fp8(context, weight)) {
    return GpuOps::weight_gradient_product(context, weight, y_gradient, x);
  }
  FARSTEP_CHECK(converted_ == y_gradient, "the input's gradient comes before the weight's");
  const int64_t rows = context.shape.rows();
  // Column by column, in the memory that took it row by row.
  const Fp8Matrix input{.transposed = scratch_.input.codes,
                        .inverse_scale = scratch_.input.inverse_scale};
  convert(kForwardFormat, x, rows, weight.in, input);
  gpu_multiply_fp8(device(), weight.out, weight.in, rows,
                   along_columns(scratch_.gradient, kGradientFormat),
                   along_columns(input, kForwardFormat), /*fast=*/false,
                   {.exact = weight.gradient, .add = context.add});
}

}  // namespace farstep
