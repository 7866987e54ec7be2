// One inner step: gradients of a batch, shared out over the site's devices and micro-batch by
// micro-batch, then one update.
//
// With inner.reduction "buckets" every device sums the gradients of all and updates its own values,
// which so stay the same bits on all of them. With "master", the baseline, and where the devices'
// gradients can be added up in no other way, the first does both and hands its values out.
//
// A GPU alone at its site may be a step behind the host: see start().
//
// Not thread-safe: called by the training thread, which drives the first device; every other one
// has a thread of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/base/named_buffers.h"
#include "trainer/config/run_config.h"
#include "trainer/data/loader.h"
#include "trainer/inner/gpu_step.h"
#include "trainer/inner/optimizer.h"
#include "trainer/inner/share_gradients.h"
#include "trainer/inner/site_devices.h"
#include "trainer/reduction/site_reduction.h"

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
  // same shape, follow it: they take over what changes its values between two steps.
  InnerStep(TrainableModel& model, const InnerConfig& config,
            std::vector<std::unique_ptr<Replica>> replicas = {});

  // `model` and the replicas.
  std::size_t num_devices() const { return devices_.size(); }

  // The update from the gradient of the mean loss over all targets of `batch`, clipped by its
  // global norm, at the learning rate of `progress` in [0, 1]. Device i has the next `shares[i]`
  // sequences, which add up to the batch; at most `micro_batch` of them are on it at once, the last
  // time perhaps fewer. On CPUs gradients are added in order of the devices. Throws, and leaves
  // parameters and optimizer as they were: InternalError if loss or gradient is not finite;
  // ConfigError with the largest micro-batch that fits if a device's memory has no room.
  StepResult run(const TokenBatch& batch, std::span<const int64_t> shares, int64_t micro_batch,
                 double progress);
  // The same with the whole batch on the first device.
  StepResult run(const TokenBatch& batch, int64_t micro_batch, double progress);

  // Whether the site's only device is a GPU with the fused step.
  bool may_be_late() const { return on_gpu_ != nullptr; }
  // As run(), but where the GPU may be late the host does not wait for it: returned, or thrown, is
  // what became of the step before, nothing if that is known, and after a step that failed this one
  // is not taken either. The batch is of no use to it after.
  std::optional<StepResult> start(const TokenBatch& batch, std::span<const int64_t> shares,
                                  int64_t micro_batch, double progress);
  // Waits for the step under way: its result, or nothing if there is none; throws as run(). What
  // else reads or changes the model or the state comes after this, or after the step on the stream.
  std::optional<StepResult> finish();

  // The optimizer's state as Optimizer has it, which is the same for all devices. No step is under
  // way.
  NamedBuffers pull_state();
  void push_state();

 private:
  // What a step needs and what the devices make of it, each its own elements.
  struct Step;
  // What the host knows of a step that a GPU is at.
  struct StepUnderWay {
    double progress = 0;
    StepResult result;
  };

  Step make_step(const TokenBatch& batch, std::span<const int64_t> shares, int64_t micro_batch,
                 double progress) const;
  StepResult run_at_once(Step step, double progress);
  StepResult settle(StepUnderWay step);
  void run_device(std::size_t device, Step& step);
  void follow_first(std::size_t device, int64_t version);
  void add_to_first();
  void update(std::size_t device, Step& step);
  // Throws what the device has thrown, or what is to be said of it.
  void rethrow(std::size_t device, const std::exception_ptr& thrown, const Step& step);

  const InnerConfig config_;
  SiteDevices devices_;
  const std::unique_ptr<SiteReduction> reduction_;      // none of one device, and with a master
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // of the devices that update
  std::vector<int64_t> followed_;    // by device, the version of the first's values that it has
  std::unique_ptr<GpuStep> on_gpu_;  // of a site that may be ahead of its GPU
  std::optional<StepUnderWay> under_way_;
};

}  // namespace farstep
