// LLaMA with forward and backward written out over memory of its own: no autograd, and nothing
// allocated after the first pass of a shape. For CPU slices; Llama is its oracle.
//
// T is the type of the products' factors and of what lies between them, float or BF16. The residual
// stream, norms, rotations, softmaxes, loss, all sums and all gradients are fp32. With a fixed
// number of threads equal calls give equal bits. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include "trainer/model/fused_block.h"
#include "trainer/model/rotary_table.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

template <typename T>
class FusedLlama : public TrainableModel {
 public:
  // All parameters are 0: initialise them, or write parameters().host_values().
  explicit FusedLlama(const LlamaConfig& config);

  Parameters& parameters() override { return parameters_; }

  at::Tensor summed_loss(const at::Tensor& tokens) override;
  at::Tensor backpropagate(const at::Tensor& tokens, const GradientPass& pass) override;

  // Bytes of all activations; fused_buffers.h says of what.
  int64_t activation_bytes() const { return pool_.bytes(); }

 private:
  struct Pass;

  Pass begin_pass(const at::Tensor& tokens);
  void forward(const Pass& pass);
  void backward(const Pass& pass);
  // Leaves the losses, and where `gradient` is wanted that in the last norm's output.
  void head(const Pass& pass, bool gradient);

  const LlamaConfig config_;
  Parameters parameters_;
  RotaryTable rotary_;
  BufferPool<T> pool_;
};

}  // namespace farstep
