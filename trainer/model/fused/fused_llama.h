// LLaMA with forward and backward written by hand, without autograd. Allocates nothing after the
// first pass of a shape, except attention's results on a GPU. Llama is its oracle.
//
// T, float or BF16, is the type of the products' factors and of the values between them. The
// residual stream, norms, rotations, softmaxes, the loss, all sums and all gradients are fp32. With
// a fixed number of threads equal calls give equal bits. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "trainer/model/fused/fused_ops.h"
#include "trainer/model/llama/rotary_table.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

template <typename T>
class FusedLlama : public TrainableModel {
 public:
  // All parameters are 0 until they are initialised or written to parameters().host_values(). The
  // model is on the device of `ops`. With `recompute` a block keeps only its input, and backward
  // repeats its forward; the gradients have the same bits.
  FusedLlama(const LlamaConfig& config, std::unique_ptr<FusedOps<T>> ops, bool recompute = false);

  Parameters& parameters() override { return parameters_; }

  // Batch and loss are Llama's.
  at::Tensor summed_loss(at::TensorList batch, const std::stop_token& stop = {}) override;
  at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) override;
  std::optional<int64_t> recordable_memory() const override;

  // Returns the bytes of the activations (fused_buffers.h) and of the operations' own memory.
  // Excludes LibTorch's allocations for attention on a GPU.
  int64_t activation_bytes() const { return arena_.bytes() + ops_->scratch_bytes(); }

 private:
  struct Pass;

  Pass begin_pass(const at::Tensor& tokens, const GradientPass& gradients);
  void forward(const Pass& pass);
  // Computes the losses, and with `gradient` also the gradient in the last norm's output.
  void head(const Pass& pass, bool gradient);
  void backward(const Pass& pass);
  // Returns `scale` times the sum of all losses.
  at::Tensor sum_losses(const Pass& pass, double scale) const;

  const LlamaConfig config_;
  const std::unique_ptr<FusedOps<T>> ops_;
  const bool recompute_;
  Parameters parameters_;
  RotaryTable rotary_;
  Arena arena_;
};

}  // namespace farstep
