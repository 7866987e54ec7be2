#include "trainer/inner/site_optimizer.h"

#include <algorithm>

#include "trainer/inner/make_optimizer.h"

namespace farstep {

SiteOptimizer::SiteOptimizer(const InnerConfig& config, SiteDevices& devices,
                             std::size_t num_updating)
    : devices_(devices), optimizers_(num_updating) {
  devices_.run_on_all([&](std::size_t device) {
    if (device >= num_updating) return;
    optimizers_[device] = make_optimizer(config, devices_.model(device).parameters());
  });
}

// A checkpoint has one state, since all devices that update hold the same.
void SiteOptimizer::push_state() {
  first().push_state();
  const auto state = first().pull_state();
  for (std::size_t device = 1; device < optimizers_.size(); ++device) {
    devices_.run_on(device, [&](std::size_t) {
      const auto copy = on(device).pull_state();
      for (std::size_t i = 0; i < state.size(); ++i) {
        std::ranges::copy(state[i].bytes, copy[i].bytes.begin());
      }
      on(device).push_state();
    });
  }
}

}  // namespace farstep
