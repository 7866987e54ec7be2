// Measures a GPU's memory through LibTorch's allocator, for the probe of memory.
#pragma once

#include <ATen/ATen.h>

#include "heterogeneity/profile/device_memory.h"

namespace farstep {

// Returns the heap of a GPU that has been opened. Called by the thread that owns the device.
heterogeneity::DeviceHeap heap_of(at::Device gpu);

}  // namespace farstep
