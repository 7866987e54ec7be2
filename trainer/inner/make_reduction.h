// Which reduction the devices of a site can have.
#pragma once

#include <memory>

#include "trainer/config/run_config.h"
#include "trainer/inner/site_devices.h"
#include "trainer/reduction/site_reduction.h"

namespace farstep {

// The sum of the gradients of `devices`, which must outlive it: in host memory if all are CPU
// slices, by NCCL if all are GPUs, each another one. Null if there is one device, if the config
// asks for a master, or, which the log then says, if the devices can have no other.
std::unique_ptr<SiteReduction> make_reduction(const InnerConfig& config,
                                              const SiteDevices& devices);

}  // namespace farstep
