// Replaces the gradients of a site's devices by their sum, bucket by bucket during backward.
//
// begin_step() must be called while no device is in a step. In a step each device's own thread
// reports with ready() which parts of its gradient are final, and then calls finish(). Any thread
// may call abandon().
#pragma once

#include <cstddef>
#include <cstdint>

namespace farstep {

class SiteReduction {
 public:
  virtual ~SiteReduction() = default;

  virtual void begin_step() = 0;

  // Reports that elements [begin, end) of the device's flat gradient are final. The device must not
  // use them until finish() has returned. In a step every element is reported once. Does not wait.
  virtual void ready(std::size_t device, int64_t begin, int64_t end) = 0;

  // Waits until all devices are here. Returns true if this one's gradient is the sum of all then,
  // with the same bits on every device; on a GPU, for later work of the thread's stream. Writes
  // that a thread made before are visible to all threads afterwards. Returns false if a device has
  // abandoned the step.
  virtual bool finish(std::size_t device) = 0;

  // Reports that a device has failed: makes present and later calls of finish() return false.
  virtual void abandon() = 0;

  // From the next step on the sum goes through `next` as well, as the gradient of its device 0, and
  // all devices get what that returns. Null: no more. Returns false if this reduction cannot do it.
  virtual bool pass_on(SiteReduction* next) { return next == nullptr; }

  // Returns the weight of this site's gradient in the sum over all sites, from 0 to 1; 1 within a
  // site. With 0, finish() does not deliver the sum.
  virtual double coefficient() const { return 1; }

  // Returns how long the last finish() waited for other sites; 0 within a site.
  virtual double waited_seconds() const { return 0; }
};

}  // namespace farstep
