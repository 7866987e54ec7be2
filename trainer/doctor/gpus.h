// The GPUs of this machine as the NVIDIA driver tells them, and whether they fit the site.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/doctor/finding.h"
#include "trainer/settings/site_config.h"
#include "trainer/tasks/memory_needs.h"

namespace farstep {

struct Gpu {
  std::string name;
  int64_t memory_bytes = 0;
};

struct GpuDriver {
  std::string version;  // "580.95.05"; empty: there is no driver
  std::vector<Gpu> gpus;
};

// Asks the driver, without LibTorch and without a context on any GPU.
GpuDriver read_gpu_driver();

// Returns the version in the text of /proc/driver/nvidia/version; empty if there is none.
std::string driver_version_in(const std::string& text);

// Returns what is wrong with the GPUs of the site's devices. `has_kernels`: the program was built
// with CUDA. `needs` is nullopt if the run is not known.
Finding gpu_finding(const GpuDriver& driver, const SiteConfig& site, bool has_kernels,
                    const std::optional<MemoryNeeds>& needs);

}  // namespace farstep
