// What an inner step needs of a model: parameters, and gradients of micro-batches added to theirs.
//
// Implementations differ in speed and rounding, not in what they compute. Called by the training
// thread only.
#pragma once

#include <ATen/ATen.h>

#include "trainer/model/parameters.h"

namespace farstep {

class TrainableModel {
 public:
  virtual ~TrainableModel() = default;

  virtual Parameters& parameters() = 0;

  // Summed cross-entropy of all B T targets, an fp32 scalar on the device; `tokens` as below.
  virtual at::Tensor summed_loss(const at::Tensor& tokens) = 0;

  // Runs forward and backward on `tokens` (B, T + 1), int64, on the model's device: columns 0 to T
  // - 1 are inputs, 1 to T targets. Adds `scale` times the gradient of the summed cross-entropy of
  // all B T targets to parameters().gradients(), and returns `scale` times that sum: an fp32 scalar
  // on the device, so that nobody waits for it.
  virtual at::Tensor add_gradients(const at::Tensor& tokens, double scale) = 0;

  // The same, but replaces what parameters().gradients() held.
  virtual at::Tensor set_gradients(const at::Tensor& tokens, double scale) {
    parameters().gradients().zero_();
    return add_gradients(tokens, scale);
  }
};

}  // namespace farstep
