// What a run trains: a model, the examples that it learns from, and how well it does.
//
// The inner step, the optimizers and the sync see parameters, gradients and opaque batches only.
// All that knows what an example is stands behind this interface. Training language models on
// tokens is one task, classifying images another (trainer/model/convnet/image_task).
//
// For a language model an example is a window of S + 1 tokens, and a batch is token ids (B, S + 1).
// The loss is the cross-entropy of the next token. For images an example is an image with its
// label, and a batch is images (B, 1, H, W) and labels (B). Validation then also counts correct
// labels.
//
// The order of a run's data is a permutation of the numbers 0 to num_examples() - 1, of which each
// step reads its own; validation is divided among the sites, whose results add up. `farstep train`
// trains LLaMA without this interface.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "trainer/data/batch_view.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

// One part of a validation: of `examples` examples, spread evenly over the validation set, every
// num_parts-th from number `part` on.
struct ValidationPart {
  int64_t part = 0, num_parts = 1;
  int64_t examples = 0;  // of all parts together; 0 is the whole set
  int64_t batch = 64;    // on the device at once
};

// What a part comes to. Those of all parts add up to the whole set's.
struct Validation {
  double loss_sum = 0;
  int64_t targets = 0;
  std::optional<int64_t> correct;  // targets that the model names, where the task counts them

  double loss() const { return loss_sum / static_cast<double>(targets); }
};

class Task {
 public:
  virtual ~Task() = default;

  // A model of the task on an open device, all parameters 0. Called by the device's thread.
  virtual std::unique_ptr<TrainableModel> make_model(at::Device device) const = 0;

  // Examples to train on.
  virtual int64_t num_examples() const = 0;
  // Those of the given numbers, in that order. Throws DataError. Any thread's.
  virtual Batch read(std::span<const int64_t> numbers) const = 0;

  // How well `model`, which make_model() made, does on a part of the validation set.
  virtual Validation validate(TrainableModel& model, const ValidationPart& part) const = 0;
};

}  // namespace farstep
