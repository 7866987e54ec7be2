// The interface of a site's inner steps: the part of its training that depends on data, model and
// devices.
#pragma once

#include <optional>
#include <span>
#include <stop_token>

#include "heterogeneity/knowledge/gradient_noise.h"
#include "trainer/data/batch_source.h"
#include "trainer/reduction/site_reduction.h"
#include "trainer/strategy/strategy.h"
#include "trainer/telemetry/event.h"

namespace farstep {

// A request for one inner step.
struct StepOrder {
  int64_t round = 1, step = 1;  // its number in the round
  int64_t batch = 1;            // sequences
  int64_t micro_batch = 1;      // sequences on one device at once
  double progress = 0;          // of the run, in [0, 1]
  double rate_share = 1;        // the schedule's learning rate, as a share of the peak
  double learning_rate_factor = 1;
  bool measures_noise = false;
};

// A finished inner step.
struct StepDone {
  StepEvent event;
  double held_seconds = 0;    // its wait for a checkpoint's copy, after event.seconds
  double waited_seconds = 0;  // its wait for a batch of another site, before event.start
  std::optional<heterogeneity::GradientNoise> noise = {};  // what it showed; nullopt: nothing
};

class InnerTraining {
 public:
  virtual ~InnerTraining() = default;

  // Sets the data of the next steps.
  virtual void begin(const StepDraws& draws) = 0;

  // Takes a step and returns it when it is done. A GPU may be one step late: then the new step
  // stays under way, and the call returns the step before (nullopt for the first). `gradients`,
  // unless null, takes part in the sum of the gradients. Throws DivergenceError if loss or gradient
  // is not finite, DataError if the batch cannot be read, PeerError if another site sends it and it
  // does not come. Throws Stopped if `stop` is requested before the step's update, and NoRoomError
  // if a device has no memory for the micro-batch: then nothing has changed, and the next call gets
  // the same data.
  virtual std::optional<StepDone> step(const StepOrder& order, SiteReduction* gradients,
                                       const std::stop_token& stop) = 0;
  virtual bool is_step_under_way() const = 0;
  // Waits for the step under way and returns it; nullopt if there is none. Must be called before
  // the results of steps are counted, saved or changed.
  virtual std::optional<StepDone> finish() = 0;

  // Replaces the optimizer's moments by fresh ones, and lets the learning rate rise from near 0 in
  // the next steps. Returns their number. No step may be under way.
  virtual int64_t begin_anew() = 0;
  // Returns what multiplies the schedule's learning rate in the next step; 1 unless it rises so.
  virtual double warm_up_factor() const = 0;

  virtual LocalTheta& theta() = 0;
  // The memory in which step()'s `gradients` sums a step's gradient, flat, fp32.
  virtual std::span<float> gradients() = 0;
};

}  // namespace farstep
