// A whole inner step of a site's only GPU: the micro-batches of a batch, clipping and update, given
// to the GPU without waiting for it.
//
// The host writes what a step is asked for and reads what became of it while the GPU works on
// another: tokens travel on a stream of their own, ahead of their step. The work between is the
// same for equal shapes, and recorded where there is a recorder. Belongs to the device's thread.
#pragma once

#include <memory>

#include "trainer/config/run_config.h"
#include "trainer/data/loader.h"
#include "trainer/inner/deferred_update.h"
#include "trainer/inner/step_graphs.h"
#include "trainer/model/trainable_model.h"

namespace farstep {

class GpuStep {
 public:
  struct Outcome {
    UpdateOutcome update;
    double seconds = 0;  // from the step's beginning on the GPU to its end
  };

  virtual ~GpuStep() = default;

  // Gives the GPU the step of `batch`, which is of no use to it after. At most two steps are under
  // way. If it throws, no step was given.
  virtual void start(const TokenBatch& batch, int64_t micro_batch, double learning_rate) = 0;
  // Waits for the first of them.
  virtual Outcome finish() = 0;
  virtual int64_t num_under_way() const = 0;
};

// Of a model with recordable_memory() on a GPU, and its optimizer's deferred(), which must outlive
// it; `recorder` may be null. Null in a build without CUDA.
std::unique_ptr<GpuStep> make_gpu_step(TrainableModel& model, DeferredUpdate& update,
                                       const std::optional<double>& clip_norm,
                                       std::unique_ptr<WorkRecorder> recorder);

}  // namespace farstep
