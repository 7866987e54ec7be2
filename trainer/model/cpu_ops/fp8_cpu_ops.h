// The fused model's operations on a CPU slice with FP8 factors in the linear layers (fp8_layers.h).
//
// Emulates a GPU's arithmetic to measure the cost of FP8 in loss: rounds factors to FP8 and
// multiplies them in bf16, which represents them exactly. It is slower than bf16.
#pragma once

#include <vector>

#include "trainer/kernels/numbers/fp8.h"
#include "trainer/model/cpu_ops/cpu_ops.h"

namespace farstep {

class Fp8CpuOps final : public CpuOps<BF16> {
 public:
  int64_t scratch_bytes() const override;
  void begin(const Context& context, const FusedWeights<BF16>& weights) override;

 protected:
  const BF16* weight_factor(const Context& context, const MatrixWeight<BF16>& weight) override;
  const BF16* input_factor(const Context& context, const MatrixWeight<BF16>& weight,
                           const BF16* x) override;
  const BF16* gradient_factor(const Context& context, const MatrixWeight<BF16>& weight,
                              const BF16* y_gradient) override;

 private:
  struct Scratch {
    BF16* input = nullptr;     // (R, max(C, F))
    BF16* gradient = nullptr;  // (R, max(C + 2 G D, 2 F))
  };

  void round_weights(const FusedWeights<BF16>& weights);

  Arena weights_arena_{at::kCPU}, arena_{at::kCPU};
  Scratch scratch_;
  std::vector<BF16*> weights_;  // by number; unused for layers that do not fit FP8
  int64_t version_ = -1;        // FusedWeights::version of weights_
};

}  // namespace farstep
