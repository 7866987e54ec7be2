// How the gradients of a site's devices become their sum on every device, bucket by bucket while
// backward is still under way.
//
// begin_step() is called while no device is in a step. In a step every device's own thread says
// which parts of its gradient are final, and then finishes; abandon() may be any thread's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace farstep {

class SiteReduction {
 public:
  virtual ~SiteReduction() = default;

  virtual void begin_step() = 0;

  // Elements [begin, end) of the device's flat gradient are final, and not the device's to touch
  // until it has finished; in a step every element becomes so once. Waits for no device.
  virtual void ready(std::size_t device, int64_t begin, int64_t end) = 0;

  // Returns true once all devices are here and this one's gradient is the sum of all, the same bits
  // on every device (on a GPU: for the work that its stream is given next); what each thread wrote
  // before is seen by all then. Returns false if a device has abandoned the step.
  virtual bool finish(std::size_t device) = 0;

  // A device has failed: finish() returns false, to who waits in it and to who comes.
  virtual void abandon() = 0;
};

}  // namespace farstep
