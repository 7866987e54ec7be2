// One inner step: the gradients of a batch, split over the site's devices and into micro-batches,
// then one update.
//
// With inner.reduction "buckets" every device sums the gradients of all and updates its own values.
// So all devices keep the same bits. With "master", the baseline, the first device sums and
// updates, and copies its values to the others. This is also used where the devices cannot sum
// gradients otherwise.
//
// The host may be one step ahead of a GPU that is alone at its site; see start().
//
// Not thread-safe: called by the training thread, which drives the first device. Each other device
// has a thread of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "heterogeneity/knowledge/gradient_noise.h"
#include "trainer/base/memory/named_buffers.h"
#include "trainer/data/batch_view.h"
#include "trainer/inner/gpu/gpu_step.h"
#include "trainer/inner/inner_config.h"
#include "trainer/inner/share_gradients.h"
#include "trainer/inner/site_devices.h"
#include "trainer/inner/site_optimizer.h"
#include "trainer/reduction/site_reduction.h"

namespace farstep {

// How a step is taken.
struct StepTerms {
  // For steps outside a run.
  StepTerms(double rate_share) : rate_share(rate_share) {}
  StepTerms(double rate_share, double learning_rate_factor, bool measures_noise,
            double progress = 0)
      : rate_share(rate_share),
        learning_rate_factor(learning_rate_factor),
        measures_noise(measures_noise),
        progress(progress) {}

  double rate_share;                // the schedule's learning rate, as a share of the peak
  double learning_rate_factor = 1;  // multiplies the schedule's rate
  // Whether the result has the step's noise. A GPU with the fused step always measures it.
  bool measures_noise = false;
  double progress = 0;  // position in the run, in [0, 1], for messages
};

struct StepResult {
  double loss = 0;           // mean over the batch's targets, before the update
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
  int64_t tokens = 0;  // targets of the batch
  // The time of each device for the gradients of its share.
  std::vector<double> device_seconds;
  double held_seconds = 0;    // the step's wait for a snapshot to be copied
  double across_seconds = 0;  // the step's wait for other sites' gradients
  // Of the first micro-batch of each device against the gradient of the update; nullopt if that is
  // all there is, or nothing was measured.
  std::optional<heterogeneity::GradientNoise> noise = {};
};

class InnerStep {
 public:
  // Trains `model`, which must outlive this, with a fresh optimizer. The replicas are models of the
  // same shape. They copy the changes of its values between two steps. With `across_sites` the
  // steps are taken by run_across(): a GPU's step is then not recorded, and its first device adds
  // up the gradients of GPUs.
  InnerStep(TrainableModel& model, const InnerConfig& config,
            std::vector<std::unique_ptr<Replica>> replicas = {}, bool across_sites = false);

  // Lets the learning rate of the next steps rise from near 0 to the schedule's, because they begin
  // with fresh moments in mid-run. Returns the number of these steps: 2 / (1 - beta2).
  int64_t warm_up();
  // Replaces the moments by fresh ones, then warms up. No step may be under way.
  int64_t begin_anew();
  // Returns what the warm-up multiplies the next step's learning rate by; 1 without one.
  double warm_up_factor() const;

  // Counts `model` and the replicas.
  std::size_t num_devices() const { return devices_.size(); }

  // Updates the values by the gradient of the mean loss over all targets of `batch`. The gradient
  // is clipped by its global norm. Device i has the next `shares[i]` examples; the shares add up to
  // the batch. At most `micro_batch` examples are on a device at once. On CPUs the gradients are
  // added in order of the devices.
  //
  // If it throws, parameters and optimizer are unchanged. Throws DivergenceError if loss or
  // gradient is not finite. Throws NoRoomError with the largest micro-batch that fits if a device's
  // memory is too small. Throws Stopped if `stop` is requested before the gradients are complete:
  // then no device takes the step.
  StepResult run(const BatchView& batch, std::span<const int64_t> shares, int64_t micro_batch,
                 const StepTerms& terms, const std::stop_token& stop = {});
  // The same with the whole batch on the first device.
  StepResult run(const BatchView& batch, int64_t micro_batch, const StepTerms& terms,
                 const std::stop_token& stop = {});
  // The same, but the site's gradient is summed with other sites' before clipping and update.
  // `across` sums in host_gradients() and is told which parts are final: during backward on CPUs,
  // after it on GPUs. Throws the exceptions of `across`; InternalError if another site abandons the
  // step.
  StepResult run_across(const BatchView& batch, std::span<const int64_t> shares,
                        int64_t micro_batch, const StepTerms& terms, SiteReduction& across,
                        const std::stop_token& stop = {});
  // The same for a site that serves alone: without forward and backward, it updates the values by
  // the other sites' gradient. The result has no loss, tokens and times.
  StepResult run_serving(const StepTerms& terms, SiteReduction& across);
  // The memory in which run_across() sums: the first device's gradient, flat, fp32, or for a GPU a
  // copy of it.
  std::span<float> host_gradients();

  // Returns whether the site's only device is a GPU with the fused step.
  bool may_be_late() const { return on_gpu_ != nullptr; }
  // As run(), but without a wait for a GPU that may be late. Returns the result of the step before;
  // nullopt if finish() has returned it. If that step failed it throws, and this step is not taken
  // either. The batch's memory may be freed when this returns. A step that a GPU has begun ends
  // whole: a stop has no effect on it.
  std::optional<StepResult> start(const BatchView& batch, std::span<const int64_t> shares,
                                  int64_t micro_batch, const StepTerms& terms,
                                  const std::stop_token& stop = {});
  // Waits for the step under way and returns its result; nullopt if there is none. Throws as run()
  // does. Must be called before any other read or change of the model or its state, unless that
  // uses the step's stream.
  std::optional<StepResult> finish();

  // The site's state, as in SiteOptimizer. No step may be under way.
  NamedBuffers pull_state();
  void push_state();

  // As in Optimizer: the site's state, and the values that all devices share. No step may be under
  // way at start_snapshot().
  NamedBuffers start_snapshot(bool with_values);
  void copy_snapshot() { optimizer_.first().copy_snapshot(); }

 private:
  // The inputs of a step and the results of the devices; each device writes only its own elements.
  struct Step;
  Step make_step(const BatchView& batch, std::span<const int64_t> shares, int64_t micro_batch,
                 const StepTerms& terms, const std::stop_token& stop) const;
  double rate_of(const StepTerms& terms) const;
  StepResult run_at_once(Step step, SiteReduction* across = nullptr);
  bool is_under_way() const { return on_gpu_ && on_gpu_->num_under_way() > 0; }
  void run_device(std::size_t device, Step& step, SiteReduction* across);
  // Whether backward computes the site's gradient in the memory in which it is summed.
  bool is_final_in_backward() const;
  // Sums the first device's gradient with other sites'. Those of the site's devices are in it.
  void sum_across(SiteReduction& across);
  void follow_first(std::size_t device, int64_t version);
  void add_to_first();
  void update(std::size_t device, Step& step);
  // Rethrows the device's exception, or one that explains it.
  void rethrow(std::size_t device, const std::exception_ptr& thrown, const Step& step);

  const InnerConfig config_;
  SiteDevices devices_;
  const std::unique_ptr<SiteReduction> reduction_;  // null for one device, and with a master
  at::Tensor host_gradient_;  // a GPU's, for other sites; undefined until it is asked for
  SiteOptimizer optimizer_;
  int64_t warm_up_steps_ = 0;      // 0: without
  int64_t warm_steps_ = 0;         // that have been taken since warm_up()
  std::vector<int64_t> followed_;  // by device: the version of the first's values that it has
  // The steps of a site that may be ahead of its GPU; only this object knows which are under way.
  const std::unique_ptr<GpuStep> on_gpu_;
};

}  // namespace farstep
