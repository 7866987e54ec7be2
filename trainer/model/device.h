// The device that a site's config asks for, as LibTorch knows it.
#pragma once

#include <ATen/ATen.h>

#include "trainer/config/site_config.h"

namespace farstep {

// Opens the device. Call it from the thread that trains: a cpu slice gives that its number of
// threads, a GPU a stream of its own, which all that the thread asks of that GPU goes to, in order.
// Other threads synchronize() first. A GPU loads LibTorch's CUDA library, which the program does
// not link. Throws ConfigError that says what is missing: the library, a GPU, or the one of that
// index.
at::Device open_device(const DeviceConfig& config);

// Returns when the device has done all work given to it so far.
void synchronize(at::Device device);

}  // namespace farstep
