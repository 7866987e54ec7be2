// What one device does of a batch: the gradient of its share, micro-batch by micro-batch.
//
// Called by the device's thread.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>

#include "trainer/data/loader.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

// Sequences [first, first + sequences) of a batch, at most `micro_batch` on the device at once.
struct Share {
  int64_t first = 0, sequences = 0, micro_batch = 0;
};

struct ShareResult {
  double loss = 0;     // its part of the batch's mean
  double seconds = 0;  // without those spent in `ready`
};

// Leaves the gradient of the share's part of the batch's mean loss in the model's gradients: zeros
// for an empty share. `ready`, if there is one, is told what is final, as GradientPass has it.
ShareResult share_gradients(TrainableModel& model, const TokenBatch& batch, const Share& share,
                            const std::function<void(int64_t, int64_t)>& ready = {});

// The largest micro-batch below `too_large` whose gradients the device's memory has room for; 0 if
// there is none. Tries them on sequences of `batch`, so the model's gradients are of no use after.
int64_t largest_micro_batch(TrainableModel& model, const TokenBatch& batch, int64_t too_large);

// Sequences [first, first + count) of the batch as an int64 tensor (count, length + 1) on `device`.
at::Tensor token_tensor(const TokenBatch& batch, int64_t first, int64_t count, at::Device device);

}  // namespace farstep
