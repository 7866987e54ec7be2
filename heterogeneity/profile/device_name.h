// The name of a device.
#pragma once

#include <cstdint>
#include <string>

namespace farstep::heterogeneity {

// The processor's model, "cpu" where the system does not say it, and the slice's threads.
std::string cpu_name(int64_t threads);

// The name of the process's GPU of that index as the driver gives it, "cuda:0" where it gives none.
// The GPU has been opened.
std::string gpu_name(int index);

}  // namespace farstep::heterogeneity
