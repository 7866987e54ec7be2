// How many cores this process can keep busy, which may be fewer than the machine has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace farstep {

// Returns the cores' worth of time that the control groups of this process let it use, as 1.5;
// nullopt without a limit. `root` is the folder that has proc/ and sys/.
std::optional<double> core_quota(const std::filesystem::path& root = "/");

// Returns the number of cores that the calling thread may run on, or its quota, rounded down, where
// that is less; at least 1. So many threads can run at once. Throws InternalError.
int64_t usable_cores(const std::filesystem::path& root = "/");

}  // namespace farstep
