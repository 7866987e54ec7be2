// Measures one device of a site by real inner steps of the run's model and by its matrix products.
//
// Belongs to the thread that it is called from, which drives the device.
#pragma once

#include <stop_token>

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

// Fills `profile` probe by probe: memory and largest micro-batch, step times, TFLOPS. The model is
// one of its own on random tokens, and is gone afterwards. False if stop was requested before the
// end. Throws ConfigError if there is no such device; LibTorch's errors pass through.
bool profile_device(const Workload& workload, const DeviceConfig& config, Clock& clock,
                    const std::stop_token& stop, DeviceProfile& profile);

}  // namespace farstep
