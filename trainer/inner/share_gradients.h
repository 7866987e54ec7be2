// One device's work for a batch: the gradient of its share, one micro-batch after the other.
//
// Called by the device's thread.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "heterogeneity/knowledge/gradient_noise.h"
#include "trainer/data/batch_view.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

// Examples [first, first + examples) of a batch, at most `micro_batch` on the device at once.
struct Share {
  int64_t first = 0, examples = 0, micro_batch = 0;
  bool measures_noise = false;
};

struct ShareResult {
  double loss = 0;     // the share's part of the batch's mean
  double seconds = 0;  // without those spent in `ready`
  // With measures_noise, of the first micro-batch; nullopt for an empty share.
  std::optional<heterogeneity::MeanGradient> part = {};
};

// Writes the gradient of the share's part of the batch's mean loss to the model's gradients; zeros
// for an empty share. `ready`, unless empty, is called for parts that are final, as in
// GradientPass. Throws Stopped if `stop` is requested meanwhile; the gradients are worthless then.
ShareResult share_gradients(TrainableModel& model, const BatchView& batch, const Share& share,
                            const std::function<void(int64_t, int64_t)>& ready = {},
                            const std::stop_token& stop = {});

// Returns the largest micro-batch below `too_large` whose gradients fit in the device's memory; 0
// if there is none. It tries them on examples of `batch`, and so overwrites the model's gradients.
int64_t largest_micro_batch(TrainableModel& model, const BatchView& batch, int64_t too_large);

}  // namespace farstep
