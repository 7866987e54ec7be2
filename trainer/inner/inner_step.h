// One inner step: gradients of a batch, micro-batch by micro-batch, then one update.
//
// Not thread-safe: called by the training thread.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "trainer/config/run_config.h"
#include "trainer/data/loader.h"
#include "trainer/inner/optimizer.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

struct StepResult {
  double loss = 0;           // mean cross-entropy of the batch, before the update
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
  int64_t tokens = 0;  // targets of the batch
};

class InnerStep {
 public:
  // Trains `model`, which must outlive this, with a fresh optimizer.
  InnerStep(TrainableModel& model, const InnerConfig& config);

  // The update from the gradient of the mean loss over all targets of `batch`, clipped by its
  // global norm, at the learning rate of `progress` in [0, 1]. At most `micro_batch` sequences are
  // on the device at once, the last time perhaps fewer. Throws InternalError, and leaves parameters
  // and optimizer as they were, if loss or gradient is not finite.
  StepResult run(const TokenBatch& batch, int64_t micro_batch, double progress);

  Optimizer& optimizer() { return *optimizer_; }

 private:
  TrainableModel& model_;
  const InnerConfig config_;
  const std::unique_ptr<Optimizer> optimizer_;
};

// Sequences [first, first + count) of the batch as an int64 tensor (count, length + 1) on `device`.
at::Tensor token_tensor(const TokenBatch& batch, int64_t first, int64_t count, at::Device device);

}  // namespace farstep
