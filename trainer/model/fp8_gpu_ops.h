// The fused model's operations on a GPU with the linear layers' factors in FP8, as fp8_layers.h has
// it. Only in builds with CUDA.
//
// Weights become FP8 once a step, gradients once for both of their products, inputs forward and
// once more backward, where they are needed column by column: kept, they would take another byte a
// value and layer. Not run on a GPU so far.
#pragma once

#include <vector>

#include "trainer/kernels/gpu/fp8.h"
#include "trainer/model/gpu_ops.h"

namespace farstep {

class Fp8GpuOps final : public GpuOps {
 public:
  // Of an open GPU that make_gpu_ops has found fit.
  explicit Fp8GpuOps(at::Device device) : GpuOps(device), weights_arena_(device), arena_(device) {}

  int64_t scratch_bytes() const override;
  void begin(const Context& context, const FusedWeights<BF16>& weights) override;

 protected:
  void forward_product(const Context& context, const MatrixWeight<BF16>& weight, const BF16* x,
                       const GpuProduct& y) override;
  void input_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                              const BF16* y_gradient, const GpuProduct& x_gradient) override;
  void weight_gradient_product(const Context& context, const MatrixWeight<BF16>& weight,
                               const BF16* y_gradient, const BF16* x) override;

 private:
  struct Scratch {
    Fp8Matrix input;            // (R, max(C, F)), one way or the other
    Fp8Matrix gradient;         // (R, max(C + 2 G D, 2 F)), both ways
    uint32_t* parts = nullptr;  // (kFp8Parts)
  };

  void convert(Fp8Format format, const BF16* x, int64_t rows, int64_t columns, const Fp8Matrix& to);
  void convert_weights(const FusedWeights<BF16>& weights);

  Arena weights_arena_, arena_;
  Scratch scratch_;
  std::vector<Fp8Matrix> weights_;   // by their numbers
  int64_t version_ = -1;             // of the weights that they are
  const BF16* converted_ = nullptr;  // what scratch_.gradient is
};

}  // namespace farstep
