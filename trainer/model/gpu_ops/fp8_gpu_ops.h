// The fused model's operations on a GPU with FP8 factors in the linear layers (fp8_layers.h). Only
// in builds with CUDA.
//
// Weights are converted once a step, and gradients once for both of their products. Inputs are
// converted in forward, and again in backward, which reads them by columns: keeping both would take
// another byte for each value of each layer. The kernels that write an input or a gradient also
// compute its largest magnitude, so a conversion is one pass.
#pragma once

#include <array>
#include <vector>

#include "trainer/kernels/gpu/fp8.h"
#include "trainer/model/gpu_ops/gpu_ops.h"

namespace farstep {

class Fp8GpuOps final : public GpuOps {
 public:
  // `device` must be an open GPU that make_gpu_ops() has accepted.
  explicit Fp8GpuOps(at::Device device) : GpuOps(device), weights_arena_(device), arena_(device) {}

  int64_t scratch_bytes() const override;
  void begin(const Context& context, const FusedWeights<BF16>& weights) override;

 protected:
  void forward_product(const Context& context, const MatrixWeight<BF16>& weight, const BF16* x,
                       const GpuProduct& y) override;
  void take_gradient(const Context& context, const MatrixWeight<BF16>& weight,
                     const BF16* y_gradient) override;
  void input_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                              const BF16* y_gradient, const GpuProduct& x_gradient) override;
  void weight_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                               const BF16* y_gradient, const BF16* x, cudaStream_t stream) override;
  const void* gradient_copy() const override { return gradient().transposed; }
  uint32_t* input_largest(int64_t layer) override { return found_by_kernel(inputs_, layer); }
  uint32_t* gradient_largest(int64_t layer) override { return found_by_kernel(gradients_, layer); }

 private:
  // The largest magnitude of a linear layer's matrix in this pass.
  struct Largest {
    uint32_t* word = nullptr;  // null if the layer is multiplied in bf16
    bool found = false;        // computed, or launched
  };
  using Largests = std::vector<Largest>;  // by the layers' numbers

  struct Scratch {
    Fp8Matrix input;             // (R, max(C, F)), by rows
    Fp8Matrix input_by_columns;  // the same by columns, for the gradients of weights
    // (R, max(C + 2 G D, 2 F)), by rows and by columns. Two, because products of weights' gradients
    // read one by columns while the next is written.
    std::array<Fp8Matrix, 2> gradients;
    uint32_t* words = nullptr;  // of inputs_ and gradients_
  };

  static uint32_t* found_by_kernel(Largests& all, int64_t layer);
  void cut_scratch(const Context& context, const FusedWeights<BF16>& weights);
  // Converts x. `of` is its largest magnitude, which is computed now if no kernel has.
  void convert(Fp8Format format, const BF16* x, int64_t rows, int64_t columns, Largest& of,
               const Fp8Matrix& to, cudaStream_t stream);
  void convert_weights(const FusedWeights<BF16>& weights);
  const Fp8Matrix& gradient() const { return scratch_.gradients[gradient_]; }

  Arena weights_arena_, arena_;
  Scratch scratch_;
  Largests inputs_, gradients_;
  std::size_t gradient_ = 0;              // index of the newest of scratch_.gradients
  const BF16* taken_gradient_ = nullptr;  // the matrix that it was converted from
  std::vector<Fp8Matrix> weights_;        // by number
  int64_t version_ = -1;                  // FusedWeights::version of weights_
};

}  // namespace farstep
