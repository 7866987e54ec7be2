// One inner step: gradients of a batch, shared out over the site's devices and micro-batch by
// micro-batch, then one update.
//
// Not thread-safe: called by the training thread, which drives the first device; every other one
// has a thread of its own for the time of a step.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/config/run_config.h"
#include "trainer/data/loader.h"
#include "trainer/inner/optimizer.h"
#include "trainer/inner/replica.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

struct StepResult {
  double loss = 0;           // mean cross-entropy of the batch, before the update
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
  int64_t tokens = 0;  // targets of the batch
  // By device, how long it took for the gradients of its share.
  std::vector<double> device_seconds;
};

class InnerStep {
 public:
  // Trains `model`, which must outlive this, with a fresh optimizer. The replicas, models of the
  // same shape, follow it: they have its values whenever they are used.
  InnerStep(TrainableModel& model, const InnerConfig& config,
            std::vector<std::unique_ptr<Replica>> replicas = {});

  // `model` and the replicas.
  std::size_t num_devices() const { return 1 + replicas_.size(); }

  // The update from the gradient of the mean loss over all targets of `batch`, clipped by its
  // global norm, at the learning rate of `progress` in [0, 1]. Device i has the next `shares[i]`
  // sequences, which add up to the batch; at most `micro_batch` of them are on it at once, the last
  // time perhaps fewer. Gradients are added in order of the devices. Throws InternalError, and
  // leaves parameters and optimizer as they were, if loss or gradient is not finite.
  StepResult run(const TokenBatch& batch, std::span<const int64_t> shares, int64_t micro_batch,
                 double progress);
  // The same with the whole batch on the first device.
  StepResult run(const TokenBatch& batch, int64_t micro_batch, double progress);

  Optimizer& optimizer() { return *optimizer_; }

 private:
  void add_gradients(const TokenBatch& batch, std::span<const int64_t> shares, int64_t micro_batch,
                     StepResult& result);

  TrainableModel& model_;
  const InnerConfig config_;
  const std::vector<std::unique_ptr<Replica>> replicas_;
  const std::unique_ptr<Optimizer> optimizer_;
};

// Sequences [first, first + count) of the batch as an int64 tensor (count, length + 1) on `device`.
at::Tensor token_tensor(const TokenBatch& batch, int64_t first, int64_t count, at::Device device);

}  // namespace farstep
