// The update of an optimizer on a GPU, without a wait by the host.
//
// A step calls request(), launch_part_norm() if it wants that, launch() and fetch() in this order,
// and wait() at any later time. At most two steps may lack their wait(); waits are in the order of
// the steps. Belongs to the device's thread.
#pragma once

#include <cstdint>
#include <optional>

namespace farstep {

struct UpdateOutcome {
  double loss = 0;           // sum of the losses passed to launch()
  double gradient_norm = 0;  // before clipping
  double part_norm = 0;      // of the gradients at the newest launch_part_norm(), if there was one
  bool taken = false;        // false: a number was not finite, and nothing has changed
};

class GpuUpdate {
 public:
  virtual ~GpuUpdate() = default;

  // Copies the step's settings to the GPU.
  virtual void request(double learning_rate, const std::optional<double>& clip_norm) = 0;
  // Launches the norm of the gradients as they are now, which belong to a part of the batch.
  virtual void launch_part_norm() = 0;
  // Launches clipping and update. It launches the same kernels at the same places in memory every
  // time, so they can be recorded. The `count` values of `losses`, in the GPU's memory, must be
  // finite too. If a step is not taken, no later step is taken until wait() was called for all of
  // them.
  virtual void launch(const float* losses, int64_t count) = 0;
  // Copies the step's outcome to the host.
  virtual void fetch() = 0;
  // Waits for the oldest fetched step, and returns its outcome.
  virtual UpdateOutcome wait() = 0;
};

}  // namespace farstep
