// How well a model does on a set of examples, or on one site's part of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "trainer/data/examples.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

// One part of a validation: of `examples` examples, spread evenly over the set, every num_parts-th
// from number `part` on.
struct ValidationPart {
  int64_t part = 0, num_parts = 1;
  int64_t examples = 0;  // of all parts together; 0 is the whole set
  int64_t batch = 64;    // examples on the device at once
};

// The sums over a part. Those of all parts add up to the whole set's.
struct Validation {
  double loss_sum = 0;
  int64_t targets = 0;  // 0 where the part is empty
  // Targets that the model finds the likeliest; nullopt if it counts none, or the part is empty.
  std::optional<int64_t> hits = {};

  double loss() const { return loss_sum / static_cast<double>(targets); }
  std::optional<double> accuracy() const {
    if (!hits) return std::nullopt;
    return static_cast<double>(*hits) / static_cast<double>(targets);
  }
};

// Returns how many of `available` examples are taken if `wanted` are asked for; 0 means all.
int64_t examples_taken(int64_t wanted, int64_t available);

// Receives after each batch which share is read, and the mean loss so far.
using TellShare = std::function<void(double share, double loss)>;

// Sums the model's loss and hits over the part's examples, in order of their numbers. Throws
// DataError; Stopped if `stop` is requested meanwhile.
Validation evaluate(TrainableModel& model, const Examples& examples, const ValidationPart& part,
                    const std::stop_token& stop = {}, const TellShare& tell = {});

}  // namespace farstep
