// Measures one device of a site by real inner steps of the run's model and by its matrix products.
//
// Belongs to the thread that it is called from, which drives the device.
#pragma once

#include <functional>

#include "heterogeneity/plan/site_profile.h"
#include "trainer/base/clock.h"
#include "trainer/config/run_config.h"
#include "trainer/config/site_config.h"
#include "trainer/model/llama_config.h"

namespace farstep {

// What all devices of a site are measured with.
struct Workload {
  RunConfig run;
  LlamaConfig shape;
  int64_t micro_batch = 1;  // as the run gives it without a profile
  int64_t cpu_slices = 1;   // of the site, which share the machine's memory
  double seconds = 1;       // about how long one probe may take
};

// Measures memory and largest micro-batch, then step times, then TFLOPS, and hands over the profile
// as it stands after each of the three. The model is one of its own on random tokens. Call it in a
// forked copy of the process. Throws ConfigError if there is no such device; LibTorch's errors pass
// through.
void profile_device(const Workload& workload, const DeviceConfig& config, Clock& clock,
                    const std::function<void(const DeviceProfile&)>& hand_over);

}  // namespace farstep
