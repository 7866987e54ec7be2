// LLaMA by LibTorch's operations and autograd: simple, and the oracle for faster implementations.
//
// Master weights are fp32. With bf16 compute the matrix products and the attention are bf16; the
// residual stream, norms, rotations, softmax and loss stay fp32. On a CPU with a fixed number of
// threads equal calls give equal bits. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/model/llama/attention.h"
#include "trainer/model/llama/feed_forward.h"
#include "trainer/model/shape/llama_config.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

class Llama : public TrainableModel {
 public:
  // All parameters are 0 until they are initialised or written to parameters().host_values().
  Llama(const LlamaConfig& config, at::Device device, ComputeType compute);

  const LlamaConfig& config() const { return config_; }
  at::Device device() const { return parameters_.values().device(); }
  Parameters& parameters() override { return parameters_; }

  // Returns logits (B, T, vocabulary), fp32, of int64 token ids (B, T) below vocabulary. Position t
  // sees ids 0 to t. Throws Stopped between two blocks.
  at::Tensor logits(const at::Tensor& inputs, const std::stop_token& stop = {});

  // Returns the mean cross-entropy of all B T targets, an fp32 scalar; inputs and targets are (B,
  // T) int64.
  at::Tensor loss(const at::Tensor& inputs, const at::Tensor& targets);

  // A batch is token ids (B, T + 1), int64: columns 0 to T - 1 are inputs, 1 to T targets. The loss
  // is the cross-entropy.
  at::Tensor summed_loss(at::TensorList batch, const std::stop_token& stop = {}) override;
  // All parts are ready at once, at the end.
  at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) override;

 private:
  struct Block {
    at::Tensor attention_norm;  // (C)
    AttentionWeights attention;
    at::Tensor feed_forward_norm;  // (C)
    FeedForwardWeights feed_forward;
  };

  at::Tensor normalise(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor summed_loss(const at::Tensor& inputs, const at::Tensor& targets,
                         const std::stop_token& stop);

  const LlamaConfig config_;
  const at::ScalarType compute_;
  Parameters parameters_;
  RotaryTable rotary_;
  at::Tensor embedding_;  // (V, C)
  std::vector<Block> blocks_;
  at::Tensor final_norm_;  // (C)
  at::Tensor head_;        // (V, C); the embedding itself if it is tied
};

}  // namespace farstep
