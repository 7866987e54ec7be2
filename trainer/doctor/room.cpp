#include "trainer/doctor/room.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <system_error>

#include "trainer/inner/cores.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

constexpr double kGigabyte = 1e9;
// For records, logs, and what grows on the disk meanwhile.
constexpr double kDiskReserve = 1.2;

int64_t bytes_in(const fs::path& folder) {
  std::error_code error;
  int64_t bytes = 0;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_regular_file(error)) continue;
    const auto size = entry->file_size(error);
    // A checkpoint may be removed while this looks.
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

}  // namespace

Finding core_finding(std::span<const DeviceConfig> devices, int64_t usable_cores) {
  constexpr const char* kSubject = "cores";
  if (auto shortage = core_shortage(devices, usable_cores); !shortage.empty()) {
    return warning(kSubject, std::move(shortage));
  }
  return ok(kSubject, fmt::format("this process may keep {} busy", usable_cores));
}

DiskRoom disk_room(const fs::path& site_folder) {
  auto existing = site_folder;
  std::error_code error;
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  struct statvfs status {};
  if (::statvfs(existing.c_str(), &status) != 0) {
    throw DataError(fmt::format("{}: cannot ask how much of the disk is free: {}",
                                existing.string(), std::generic_category().message(errno)));
  }
  return {.free_bytes = static_cast<int64_t>(status.f_bavail * status.f_frsize),
          .checkpoint_bytes = bytes_in(site_folder / "checkpoints")};
}

Finding disk_finding(int64_t checkpoint_bytes, int64_t kept_checkpoints, const DiskRoom& room,
                     const fs::path& site_folder) {
  constexpr const char* kSubject = "disk";
  // The oldest checkpoint goes when the newest is complete.
  const auto one = static_cast<double>(checkpoint_bytes);
  const auto all = one * static_cast<double>(kept_checkpoints + 1);
  const auto has =
      static_cast<double>(room.free_bytes) + static_cast<double>(room.checkpoint_bytes);
  const auto figures =
      fmt::format("{}: checkpoints of {:.2f} GB each, {:.2f} GB at most; {:.2f} GB are free",
                  site_folder.string(), one / kGigabyte, all / kGigabyte, has / kGigabyte);
  constexpr const char* kRemedy = ": make room, or name another disk in `output`";
  if (all > has) return fault(kSubject, ErrorKind::kData, figures + kRemedy);
  if (kDiskReserve * all > has) {
    return warning(kSubject, figures + ", which records and logs need too" + kRemedy);
  }
  return ok(kSubject, figures);
}

}  // namespace farstep
