// Clipping and update on a device that is not waited for: what became of a step is known later.
//
// A step is asked for, given and fetched, in this order, and waited for when the host pleases, in
// the order of the steps; at most two are under way. Belongs to the device's thread.
#pragma once

#include <cstdint>
#include <optional>

namespace farstep {

struct UpdateOutcome {
  double loss = 0;           // sum of the losses that were given
  double gradient_norm = 0;  // before clipping
  bool taken = false;        // or nothing has changed, for want of finite numbers
};

class DeferredUpdate {
 public:
  virtual ~DeferredUpdate() = default;

  // Tells the device what the next step is asked for.
  virtual void ask(double learning_rate, const std::optional<double>& clip_norm) = 0;
  // Gives the device the work: the same one every time, so that it can be recorded. `losses`
  // (count), in its memory, must be finite as well. After a step that is not taken none is, until
  // all that are under way have been waited for.
  virtual void give(const float* losses, int64_t count) = 0;
  // Lets the device tell what became of the step.
  virtual void fetch() = 0;
  // What became of the first step that was not yet waited for.
  virtual UpdateOutcome wait() = 0;
};

}  // namespace farstep
