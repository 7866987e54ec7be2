// The fused model's operations on a CPU slice with the linear layers' factors in FP8, as
// fp8_layers.h has it.
//
// A CPU plays what a GPU does, to see what FP8 costs in loss: factors are rounded to what FP8 has
// of them, and multiplied in bf16, which represents that exactly. It is slower than bf16.
#pragma once

#include <vector>

#include "trainer/kernels/fp8.h"
#include "trainer/model/cpu_ops.h"

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
  std::vector<BF16*> weights_;  // by their numbers; those that do not fit are there for nothing
  int64_t version_ = -1;        // of the weights that they are
};

}  // namespace farstep
