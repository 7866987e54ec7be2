// What a run trains: a model, and the examples that it learns from and is validated with.
//
// The inner step, the optimizers and the sync see parameters, gradients and opaque batches only.
// All that knows what an example is stands behind this interface. Each model family has a task:
// language models on tokens (trainer/model/language/language_task), and image classifiers
// (trainer/model/convnet/image_task). trainer/tasks makes the one of a run.
//
// For a language model an example is a window of S + 1 tokens, and a batch is token ids (B, S + 1).
// The loss is the cross-entropy of the next token. For images an example is an image with its
// label, and a batch is images (B, C, H, W) and labels (B).
//
// The order of a run's data is a permutation of the training examples' numbers, of which each step
// reads its own. Validation is divided among the sites, whose results add up (evaluate.h).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainer/base/named_text.h"
#include "trainer/data/example_form.h"
#include "trainer/data/examples.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

// A task outlives its models. Its methods are const and thread-safe.
class Task {
 public:
  virtual ~Task() = default;

  // Returns a model of the task on an open device, all parameters 0. With `recompute` it keeps less
  // for backward, as DeviceConfig describes. Called by the device's thread. Throws ConfigError if
  // the device or the model cannot do what is asked for.
  virtual std::unique_ptr<TrainableModel> make_model(at::Device device, bool recompute) const = 0;
  // Gives a new model the values that a run starts from. By default these are fresh values, which
  // `seed` decides. Throws DataError.
  virtual void set_start_values(Parameters& parameters, uint64_t seed) const {
    parameters.initialise(seed);
  }
  // Returns the config.json that a checkpoint keeps beside the parameters, for other programs. By
  // default it is empty: no other program knows the model.
  virtual std::string config_text() const { return "{}"; }
  // Returns the other files that a checkpoint keeps for other programs, such as the tokenizer's.
  // They live as long as the task.
  virtual std::span<const NamedText> model_files() const { return {}; }

  // Returns what every example looks like, also where there are none.
  virtual ExampleForm example_form() const = 0;
  // Where there are examples, those to train on and those to validate with.
  virtual const Examples& training() const = 0;
  virtual const Examples& validation() const = 0;
};

}  // namespace farstep
