// A whole inner step of a site's only GPU, which the host launches without waiting: the
// micro-batches of a batch, clipping and update.
//
// While the GPU runs a step, the host prepares the next and reads the outcome of the one before.
// Examples are copied on a separate stream, ahead of their step. Steps of equal shape launch the
// same kernels, which are recorded if there is a recorder. Only this object knows which steps are
// under way. Belongs to the device's thread.
#pragma once

#include <memory>
#include <optional>

#include "heterogeneity/knowledge/gradient_noise.h"
#include "trainer/data/batch_view.h"
#include "trainer/inner/gpu/step_graphs.h"
#include "trainer/inner/optimizer/gpu_update.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

// The settings of a step.
struct StepSettings {
  double progress = 0;  // of the run
  double learning_rate = 0;
};

class GpuStep {
 public:
  struct Outcome {
    StepSettings settings;
    int64_t tokens = 0;  // targets of the batch
    UpdateOutcome update;
    double seconds = 0;  // on the GPU, from the step's beginning to its end
    std::optional<heterogeneity::GradientNoise> noise;  // nullopt for one micro-batch
  };

  virtual ~GpuStep() = default;

  // Launches the step of `batch`, whose memory may be freed when this returns. At most two steps
  // may be under way. If it throws, no step was launched.
  virtual void start(const BatchView& batch, int64_t micro_batch, const StepSettings& settings) = 0;
  // Waits for the oldest step under way and returns its outcome.
  virtual Outcome finish() = 0;
  virtual int64_t num_under_way() const = 0;
};

// Makes the steps of a model with recordable_memory() on a GPU. `update` is the gpu_update() of its
// optimizer. Both must outlive it; `recorder` may be null. Only in builds with CUDA.
std::unique_ptr<GpuStep> make_gpu_step(TrainableModel& model, GpuUpdate& update,
                                       const std::optional<double>& clip_norm,
                                       std::unique_ptr<StepRecorder> recorder);

}  // namespace farstep
