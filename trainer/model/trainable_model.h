// What an inner step needs of a model: parameters, and gradients of micro-batches added to theirs.
//
// What a batch holds only the model knows, and the task that made both. To all others it is a list
// of tensors on the model's device, whose first side counts the examples. The model has the loss:
// a sum over the batch's targets.
//
// Implementations of one model differ in speed and rounding, not in what they compute. They also
// differ in how soon a pass heeds a stop; all parameters are unchanged after it. Called by the
// device's thread only.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "trainer/model/parameters/parameters.h"

namespace farstep {

// What backward does with the gradients.
struct GradientPass {
  double scale = 1;
  bool add = false;  // to those that are there, instead of replacing them
  // Called during backward, once for every part: elements [begin, end) of the flat vector are as
  // this pass leaves them (on a GPU: once the work that its stream has so far is done).
  std::function<void(int64_t begin, int64_t end)> ready = {};
  // Ends the pass in its middle, with Stopped; the gradients are worthless then.
  std::stop_token stop = {};
};

// How well a model does on a batch, as fp32 and int64 scalars on the device.
struct SummedScore {
  at::Tensor loss;  // of all targets
  at::Tensor hits;  // targets that the model finds the likeliest; undefined if it counts none
};

class TrainableModel {
 public:
  virtual ~TrainableModel() = default;

  virtual Parameters& parameters() = 0;

  // The summed loss of all targets of `batch`, an fp32 scalar on the device. Throws Stopped if
  // `stop` is requested meanwhile.
  virtual at::Tensor summed_loss(at::TensorList batch, const std::stop_token& stop = {}) = 0;
  // The same, with the hits of a model that counts them.
  virtual SummedScore summed_score(at::TensorList batch, const std::stop_token& stop = {}) {
    return {.loss = summed_loss(batch, stop), .hits = {}};
  }

  // Runs forward and backward. Leaves the gradient of `scale` times the summed loss in
  // parameters().gradients(), as `pass` says. Returns `scale` times that sum as an fp32 scalar on
  // the device, so that nobody waits for it.
  virtual at::Tensor backpropagate(at::TensorList batch, const GradientPass& pass) = 0;

  // A version of the model's memory, if its work can be recorded; it grows whenever the memory
  // moves. While it stays as it is, and bf16_values() are there, backpropagate() launches the same
  // kernels for every batch of one shape at one place, but for the first such batch.
  virtual std::optional<int64_t> recordable_memory() const { return std::nullopt; }

  at::Tensor add_gradients(at::TensorList batch, double scale) {
    return backpropagate(batch, {.scale = scale, .add = true});
  }
  at::Tensor set_gradients(at::TensorList batch, double scale) {
    return backpropagate(batch, {.scale = scale, .add = false});
  }
};

}  // namespace farstep
