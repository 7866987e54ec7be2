// Opens the devices in a site's config for LibTorch.
#pragma once

#include <ATen/ATen.h>

#include <span>

#include "trainer/model/device_config.h"

namespace farstep {

// Loads LibTorch's CUDA library, which the program does not link, if one of the devices is a GPU.
// Such a process must call it before any other use of LibTorch: LibTorch looks for the library only
// once, and would find no GPUs later. Throws ConfigError if the library cannot be loaded.
void load_gpu_library(std::span<const DeviceConfig> devices);

// Opens the device for the calling thread, which trains on it. A CPU slice sets the thread's number
// of threads. A GPU gets a stream of its own, on which the thread's work runs in order; other
// threads must synchronize() first. Calls load_gpu_library(). Throws a ConfigError that names what
// is missing: the library, all GPUs, or the one with that index.
at::Device open_device(const DeviceConfig& config);

// Waits until the device has done all its work.
void synchronize(at::Device device);

}  // namespace farstep
