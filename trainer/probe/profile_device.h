// Measures one device of a site by real inner steps of the run's model and by its matrix products.
//
// Belongs to the calling thread, which drives the device.
#pragma once

#include <functional>
#include <memory>

#include "heterogeneity/knowledge/site_profile.h"
#include "trainer/base/clock.h"
#include "trainer/probe/probed_model.h"
#include "trainer/settings/run_config.h"
#include "trainer/settings/site_config.h"

namespace farstep {

// The workload that all devices of a site are measured with.
struct Workload {
  RunConfig run;
  std::shared_ptr<const ProbedModel> model;
  int64_t micro_batch = 1;  // as the run has it without a profile
  int64_t cpu_slices = 1;   // of the site, which share the machine's memory
  double seconds = 1;       // about the time of one probe
  CpuProducts products = CpuProducts::kMeasure;
};

// Measures memory and largest micro-batch, then step times, then TFLOPS. Calls `hand_over` with the
// profile so far after each of the three. It makes its own model, on random examples. Call it in a
// forked copy of the process. Throws ConfigError if there is no such device; passes LibTorch's
// errors through.
void profile_device(const Workload& workload, const DeviceConfig& config, Clock& clock,
                    const std::function<void(const heterogeneity::DeviceProfile&)>& hand_over);

}  // namespace farstep
