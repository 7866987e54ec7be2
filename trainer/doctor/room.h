// Whether cores and disk of the machine suffice for the run. The figures of the machine are
// arguments, so tests have machines of their own; thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "trainer/doctor/finding.h"
#include "trainer/model/device_config.h"

namespace farstep {

// Compares the threads of CPU slices with the cores that the process can keep busy.
Finding core_finding(std::span<const DeviceConfig> devices, int64_t usable_cores);

// What a file system has for a folder.
struct DiskRoom {
  int64_t free_bytes = 0;
  int64_t checkpoint_bytes = 0;  // of checkpoints that are in the folder and will be replaced
};

// Looks at the disk on which the site's folder is, or will be. Throws DataError if the system does
// not say how much is free.
DiskRoom disk_room(const std::filesystem::path& site_folder);

// Compares the checkpoints that stay, and the one being written, with that room.
Finding disk_finding(int64_t checkpoint_bytes, int64_t kept_checkpoints, const DiskRoom& room,
                     const std::filesystem::path& site_folder);

}  // namespace farstep
