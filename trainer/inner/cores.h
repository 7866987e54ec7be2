// Which cores the threads of a site's CPU slices run on, where the config says.
#pragma once

#include <span>
#include <vector>

#include "trainer/config/site_config.h"

namespace farstep {

using Cores = std::vector<int64_t>;

// Cores that the calling thread may run on, in order.
Cores allowed_cores();

// By device, the cores of its threads, as many as it has; none where they may run anywhere. A slice
// has those that its config names; with `pin` the others have, in their order, the next of
// `allowed` that nobody names. Throws ConfigError if there are too few, or one named is not
// allowed.
std::vector<Cores> assign_cores(std::span<const DeviceConfig> devices, bool pin,
                                const Cores& allowed);

// Lets the calling thread, its OpenMP threads and those that it will ever start run on `cores`
// alone: any of its threads on any of them, as OpenMP may end and start threads between two loops,
// and a new one begins with its parent's cores. Does nothing without cores. Throws InternalError.
void stay_on_cores(const Cores& cores);

}  // namespace farstep
