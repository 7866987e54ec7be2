// The control groups of Linux (cgroups) that this process is in: by them a container, a service or
// a batch job has less of the machine than there is.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace farstep {

// Returns the folders of all groups whose limits on `controller`, "cpu" or "memory", hold for this
// process: its own and those above it, of version 2 and of version 1. Some may not exist: a
// container may see its own group alone, as the topmost. Empty if the system has none. `root` is
// the folder that has proc/ and sys/.
std::vector<std::filesystem::path> control_groups(std::string_view controller,
                                                  const std::filesystem::path& root = "/");

}  // namespace farstep
