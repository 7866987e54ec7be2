// What an inner step needs of a model: parameters, and gradients of micro-batches added to theirs.
//
// Implementations differ in speed and rounding, not in what they compute. Called by the training
// thread only.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "trainer/model/parameters.h"

namespace farstep {

// What backward does with the gradients.
struct GradientPass {
  double scale = 1;
  bool add = false;  // to those that are there, instead of replacing them
  // Called during backward, once for every part: elements [begin, end) of the flat vector are as
  // this pass leaves them (on a GPU: once what its stream was given so far is done).
  std::function<void(int64_t begin, int64_t end)> ready = {};
};

class TrainableModel {
 public:
  virtual ~TrainableModel() = default;

  virtual Parameters& parameters() = 0;

  // Summed cross-entropy of all B T targets, an fp32 scalar on the device; `tokens` as below.
  virtual at::Tensor summed_loss(const at::Tensor& tokens) = 0;

  // Runs forward and backward on `tokens` (B, T + 1), int64, on the model's device: columns 0 to T
  // - 1 are inputs, 1 to T targets. Leaves the gradient of `scale` times the summed cross-entropy
  // of all B T targets in parameters().gradients(), as `pass` says, and returns `scale` times that
  // sum: an fp32 scalar on the device, so that nobody waits for it.
  virtual at::Tensor backpropagate(const at::Tensor& tokens, const GradientPass& pass) = 0;

  // Not nothing if the model's work can be recorded: backpropagate() gives the device the same work
  // for tokens of one shape at one place, once it has done so before, as long as this number, which
  // grows whenever the model's memory moves, stays as it is, and bf16_values() are there.
  virtual std::optional<int64_t> recordable_memory() const { return std::nullopt; }

  at::Tensor add_gradients(const at::Tensor& tokens, double scale) {
    return backpropagate(tokens, {.scale = scale, .add = true});
  }
  at::Tensor set_gradients(const at::Tensor& tokens, double scale) {
    return backpropagate(tokens, {.scale = scale, .add = false});
  }
};

}  // namespace farstep
