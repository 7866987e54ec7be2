// What a device is called.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

namespace farstep {

// The processor's model and the slice's threads, or the GPU's name as its driver gives it; "cpu" or
// "cuda:0" where the system does not say. The device has been opened.
std::string device_name(at::Device device, int64_t threads);

}  // namespace farstep
