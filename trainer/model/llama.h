// LLaMA by LibTorch's operations and autograd: plain, and the oracle for every faster
// implementation.
//
// Master weights are fp32. With bf16 compute the matrix products and the attention are bf16; the
// residual stream, norms, rotations, softmax and loss stay fp32. On a CPU with a fixed number of
// threads equal calls give equal bits. Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/model/attention.h"
#include "trainer/model/feed_forward.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

class Llama : public TrainableModel {
 public:
  // All parameters are 0: initialise them, or write parameters().host_values().
  Llama(const LlamaConfig& config, at::Device device, ComputeType compute);

  const LlamaConfig& config() const { return config_; }
  at::Device device() const { return parameters_.values().device(); }
  Parameters& parameters() override { return parameters_; }

  // Logits (B, T, vocabulary), fp32, of int64 token ids (B, T) below vocabulary; position t sees
  // ids 0 to t.
  at::Tensor logits(const at::Tensor& inputs);

  // Mean cross-entropy of all B T targets, an fp32 scalar; inputs and targets (B, T) int64.
  at::Tensor loss(const at::Tensor& inputs, const at::Tensor& targets);

  at::Tensor summed_loss(const at::Tensor& tokens) override;
  // All parts are ready at once, at the end.
  at::Tensor backpropagate(const at::Tensor& tokens, const GradientPass& pass) override;

 private:
  struct Block {
    at::Tensor attention_norm;  // (C)
    AttentionWeights attention;
    at::Tensor feed_forward_norm;  // (C)
    FeedForwardWeights feed_forward;
  };

  at::Tensor normalise(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor summed_loss(const at::Tensor& inputs, const at::Tensor& targets);

  const LlamaConfig config_;
  const at::ScalarType compute_;
  Parameters parameters_;
  RotaryTable rotary_;
  at::Tensor embedding_;  // (V, C)
  std::vector<Block> blocks_;
  at::Tensor final_norm_;  // (C)
  at::Tensor head_;        // (V, C); the embedding itself where it is tied
};

}  // namespace farstep
