// Chooses the cores of the threads of a site's CPU slices.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/base/processor/allowed_cores.h"
#include "trainer/model/device_config.h"

namespace farstep {

// Returns by device the cores of its threads, one per thread; empty if they may run on any core. A
// slice has the cores that its config names. With `pin`, each other slice has the next cores of
// `allowed` that no slice names. Throws ConfigError if there are too few cores, or if a named core
// is not allowed.
std::vector<Cores> assign_cores(std::span<const DeviceConfig> devices, bool pin,
                                const Cores& allowed);

// Says that the CPU slices have more threads than the `usable` cores, and what mends it; empty if
// they have not. Threads that wait for a core hold up all others at the end of every loop.
std::string core_shortage(std::span<const DeviceConfig> devices, int64_t usable);

// Restricts the calling thread, its OpenMP threads and all threads that it starts later to `cores`.
// Each thread may use all of `cores`: OpenMP may end and start threads between two loops, and a new
// thread inherits its parent's cores. Empty `cores` change nothing. Throws InternalError.
void stay_on_cores(const Cores& cores);

}  // namespace farstep
