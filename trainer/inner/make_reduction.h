// Chooses the reduction of a site's devices.
#pragma once

#include <memory>

#include "trainer/inner/inner_config.h"
#include "trainer/inner/site_devices.h"
#include "trainer/reduction/site_reduction.h"

namespace farstep {

// Makes the reduction that sums the gradients of `devices`, which must outlive it. It sums in host
// memory if all are CPU slices, and by NCCL if all are different GPUs. Null if there is one device,
// if the config names a master, or if the devices cannot sum gradients; the log reports the last
// case.
std::unique_ptr<SiteReduction> make_reduction(const InnerConfig& config,
                                              const SiteDevices& devices);

}  // namespace farstep
