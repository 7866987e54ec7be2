// The optimizers of a site: one for every device that updates its own values.
//
// They start with equal states and read the same sum of gradients, bit by bit, as SiteReduction
// guarantees. So their states stay equal, as Optimizer guarantees, and the first one's is the
// site's. Called by the training thread, except on(), which the device's thread calls.
#pragma once

#include <memory>
#include <vector>

#include "trainer/inner/inner_config.h"
#include "trainer/inner/optimizer/optimizer.h"
#include "trainer/inner/site_devices.h"

namespace farstep {

class SiteOptimizer {
 public:
  // Makes fresh optimizers for the first `num_updating` devices. `devices` must outlive this.
  SiteOptimizer(const InnerConfig& config, SiteDevices& devices, std::size_t num_updating);

  Optimizer& on(std::size_t device) { return *optimizers_.at(device); }
  Optimizer& first() { return on(0); }

  // The site's state, as in Optimizer.
  NamedBuffers pull_state() { return first().pull_state(); }
  // Restores the state on all devices.
  void push_state();

 private:
  SiteDevices& devices_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

}  // namespace farstep
