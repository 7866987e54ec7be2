// A product in FP8 needs both factors along its inner dimension. So weights and gradients are kept
// in two layouts, and each conversion writes both in one pass.
#include "trainer/model/gpu_ops/fp8_gpu_ops.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/cuda/cuda_check.h"
#include "trainer/model/fused/fp8_layers.h"

namespace farstep {

namespace {

Fp8Factor along_rows(const Fp8Matrix& matrix, Fp8Format format) {
  return {matrix.codes, matrix.inverse_scale, format};
}
Fp8Factor along_columns(const Fp8Matrix& matrix, Fp8Format format) {
  return {matrix.transposed, matrix.inverse_scale, format};
}
std::size_t place_of(const MatrixWeight<BF16>& weight) {
  return static_cast<std::size_t>(weight.number);
}

}  // namespace

int64_t Fp8GpuOps::scratch_bytes() const {
  return GpuOps::scratch_bytes() + weights_arena_.bytes() + arena_.bytes();
}

void Fp8GpuOps::begin(const Context& context, const FusedWeights<BF16>& weights) {
  GpuOps::begin(context, weights);
  cut_scratch(context, weights);
  taken_gradient_ = nullptr;
  // Once a step: later micro-batches add to the gradients and use the same weights.
  if (context.add && version_ == weights.version) return;
  convert_weights(weights);
  version_ = weights.version;
}

// FP8 products of a GPU read both factors along their inner values. So each matrix is stored in
// both layouts, where backward needs the other one.
void Fp8GpuOps::cut_scratch(const Context& context, const FusedWeights<BF16>& weights) {
  const auto& config = context.config;
  const auto& shape = context.shape;
  const int64_t rows = shape.rows();
  // Four linear layers in a block: heads, output, gate and up, down.
  const std::size_t layers = 4 * weights.blocks.size();
  scratch_ = arena_.cut([&](ArenaCutter& cutter) {
    Scratch scratch;
    const int64_t inputs =
        rows * std::max({config.hidden, config.intermediate, shape.mixed_width()});
    cutter.cut(scratch.input.codes, inputs);
    cutter.cut(scratch.input.inverse_scale, 1);
    cutter.cut(scratch.input_by_columns.transposed, inputs);
    cutter.cut(scratch.input_by_columns.inverse_scale, 1);
    const int64_t gradients =
        rows * std::max({config.hidden, shape.width(), 2 * config.intermediate});
    for (auto& gradient : scratch.gradients) {
      cutter.cut(gradient.transposed, gradients);
      cutter.cut(gradient.inverse_scale, 1);
    }
    // Only products of the main stream read codes by rows, in order, so one array is enough.
    cutter.cut(scratch.gradients[0].codes, gradients);
    scratch.gradients[1].codes = scratch.gradients[0].codes;
    cutter.cut(scratch.words, static_cast<int64_t>(2 * layers));
    return scratch;
  });
  // Kernels raise these words by atomic maxima, so they begin at 0.
  FARSTEP_CUDA_CHECK(cudaMemsetAsync(scratch_.words, 0, 2 * layers * sizeof(uint32_t), stream()));
  inputs_.assign(layers, {});
  gradients_.assign(layers, {});
  for (const auto& block : weights.blocks) {
    for (const auto& weight : linear_layers(block)) {
      if (!takes_fp8(context, weight)) continue;
      inputs_[place_of(weight)].word = scratch_.words + weight.number;
      gradients_[place_of(weight)].word = scratch_.words + layers + weight.number;
    }
  }
}

// A kernel that writes a matrix finds its largest value on the way, which saves a pass over it.
uint32_t* Fp8GpuOps::found_by_kernel(Largests& all, int64_t layer) {
  if (layer < 0) return nullptr;
  auto& largest = all[static_cast<std::size_t>(layer)];
  largest.found = true;
  return largest.word;
}

// Both layouts, as forward reads the rows and backward the columns.
void Fp8GpuOps::convert_weights(const FusedWeights<BF16>& weights) {
  uint32_t* words = nullptr;
  const auto layers = static_cast<int64_t>(4 * weights.blocks.size());
  weights_ = weights_arena_.cut([&](ArenaCutter& cutter) {
    cutter.cut(words, layers);
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
  FARSTEP_CUDA_CHECK(
      cudaMemsetAsync(words, 0, static_cast<std::size_t>(layers) * sizeof(uint32_t), stream()));
  for (const auto& block : weights.blocks) {
    for (const auto& weight : linear_layers(block)) {
      if (!fits_fp8(weight)) continue;
      Largest largest{.word = words + weight.number};
      convert(kForwardFormat, weight.values, weight.out, weight.in, largest,
              weights_[place_of(weight)], stream());
    }
  }
}

void Fp8GpuOps::convert(Fp8Format format, const BF16* x, int64_t rows, int64_t columns, Largest& of,
                        const Fp8Matrix& to, cudaStream_t stream) {
  if (!of.found) {
    FARSTEP_CUDA_CHECK(launch_largest_magnitude(x, rows * columns, of.word, stream));
    of.found = true;
  }
  FARSTEP_CUDA_CHECK(launch_to_fp8(format, x, rows, columns, of.word, to, stream));
}

void Fp8GpuOps::forward_product(const Context& context, const MatrixWeight<BF16>& weight,
                                const BF16* x, const GpuProduct& y) {
  if (!takes_fp8(context, weight)) return GpuOps::forward_product(context, weight, x, y);
  const int64_t rows = context.shape.rows();
  convert(kForwardFormat, x, rows, weight.in, inputs_[place_of(weight)], scratch_.input, stream());
  // fast: sums inside a tensor core keep fewer bits. That is enough forward, and not for gradients.
  products().multiply_fp8(rows, weight.out, weight.in, along_rows(scratch_.input, kForwardFormat),
                          along_rows(weights_[place_of(weight)], kForwardFormat), /*fast=*/true, y);
}

void Fp8GpuOps::take_gradient(const Context& context, const MatrixWeight<BF16>& weight,
                              const BF16* y_gradient) {
  if (!takes_fp8(context, weight)) return;
  // Two gradients take turns, as a product on the fork may still read the other.
  gradient_ = 1 - gradient_;
  taken_gradient_ = y_gradient;
  fork().let_write(stream(), gradient().transposed);
  convert(kGradientFormat, y_gradient, context.shape.rows(), weight.out,
          gradients_[place_of(weight)], gradient(), stream());
}

void Fp8GpuOps::input_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                       const BF16* y_gradient, const GpuProduct& x_gradient) {
  if (!takes_fp8(context, weight)) {
    return GpuOps::input_gradient_product(context, weight, y_gradient, x_gradient);
  }
  FARSTEP_CHECK(taken_gradient_ == y_gradient, "another gradient was taken for the products");
  products().multiply_fp8(
      context.shape.rows(), weight.in, weight.out, along_rows(gradient(), kGradientFormat),
      along_columns(weights_[place_of(weight)], kForwardFormat), /*fast=*/false, x_gradient);
}

// The input is converted here, on the fork's stream, beside the input's gradient.
void Fp8GpuOps::weight_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                                        const BF16* y_gradient, const BF16* x,
                                        cudaStream_t stream) {
  if (!takes_fp8(context, weight)) {
    return GpuOps::weight_gradient_product(context, weight, y_gradient, x, stream);
  }
  FARSTEP_CHECK(taken_gradient_ == y_gradient, "another gradient was taken for the products");
  const int64_t rows = context.shape.rows();
  convert(kForwardFormat, x, rows, weight.in, inputs_[place_of(weight)], scratch_.input_by_columns,
          stream);
  products().multiply_fp8(weight.out, weight.in, rows, along_columns(gradient(), kGradientFormat),
                          along_columns(scratch_.input_by_columns, kForwardFormat), /*fast=*/false,
                          {.exact = weight.gradient, .add = context.add});
}

}  // namespace farstep
