// LLaMA with forward and backward written out over memory of its own: no autograd, and nothing
// allocated after the first pass of a shape. Llama is its oracle.
//
// T is the type of the products' factors and of what lies between them, float or BF16. The residual
// stream, norms, rotations, softmaxes, loss, all sums and all gradients are fp32. With a fixed
// number of threads equal calls give equal bits. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "trainer/model/fused_ops.h"
#include "trainer/model/rotary_table.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

template <typename T>
class FusedLlama : public TrainableModel {
 public:
  // All parameters are 0: initialise them, or write parameters().host_values(). The model lives on
  // the device of `ops`. `recompute`: of a block only its input is kept, and backward runs its
  // forward once more; the gradients' bits are the same.
  FusedLlama(const LlamaConfig& config, std::unique_ptr<FusedOps<T>> ops, bool recompute = false);

  Parameters& parameters() override { return parameters_; }

  at::Tensor summed_loss(const at::Tensor& tokens) override;
  at::Tensor backpropagate(const at::Tensor& tokens, const GradientPass& pass) override;
  std::optional<int64_t> recordable_memory() const override;

  // Bytes that passes work in: the activations, as fused_buffers.h has them, and what the
  // operations need besides.
  int64_t activation_bytes() const { return arena_.bytes() + ops_->scratch_bytes(); }

 private:
  struct Pass;

  Pass begin_pass(const at::Tensor& tokens, const GradientPass& gradients);
  void forward(const Pass& pass);
  // Leaves the losses, and where `gradient` is wanted that in the last norm's output.
  void head(const Pass& pass, bool gradient);
  void backward(const Pass& pass);
  // `scale` times the sum of all losses.
  at::Tensor sum_losses(const Pass& pass, double scale) const;

  const LlamaConfig config_;
  const std::unique_ptr<FusedOps<T>> ops_;
  const bool recompute_;
  Parameters parameters_;
  RotaryTable rotary_;
  Arena arena_;
};

}  // namespace farstep
