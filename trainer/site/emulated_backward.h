// Delays the parts of a gradient to the times at which an emulated device would have computed them.
// So the exchange of gradients overlaps with an emulated backward as with a real one.
//
// Belongs to the training thread, for one step. Any device's thread may call ready().
#pragma once

#include <mutex>

#include "trainer/base/clock.h"
#include "trainer/reduction/site_reduction.h"

namespace farstep {

class EmulatedBackward : public SiteReduction {
 public:
  // Of a step whose gradient has `size` values, above 0, and takes `seconds` to compute. Passes all
  // on to `next`. Both references must outlive this.
  EmulatedBackward(SiteReduction& next, Clock& clock, int64_t size, double seconds)
      : next_(next), clock_(clock), size_(size), seconds_(seconds) {}

  void begin_step() override;
  void ready(std::size_t device, int64_t begin, int64_t end) override;
  bool finish(std::size_t device) override;
  void abandon() override { next_.abandon(); }
  double coefficient() const override { return next_.coefficient(); }
  double waited_seconds() const override { return next_.waited_seconds(); }

  // Returns how long the step slept.
  double slept_seconds() const { return slept_seconds_; }

 private:
  // Sleeps until this share of the step's time has passed.
  void sleep_until_share(double share);

  SiteReduction& next_;
  Clock& clock_;
  const int64_t size_;
  const double seconds_;
  double began_seconds_ = 0;
  std::mutex mutex_;
  double slept_seconds_ = 0;  // guarded by mutex_ while devices work, as is num_final_
  int64_t num_final_ = 0;     // values
};

}  // namespace farstep
