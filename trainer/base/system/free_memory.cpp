#include "trainer/base/system/free_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "trainer/base/error.h"
#include "trainer/base/system/control_groups.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

// Returns the number in a file of one; nullopt if there is none, as in "max".
std::optional<int64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  int64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

std::optional<int64_t> free_in_machine(const fs::path& root, bool with_swap) {
  std::ifstream file(root / "proc/meminfo");
  std::string name, unit;
  int64_t kibibytes = 0;
  std::optional<int64_t> bytes;
  while (file >> name >> kibibytes && std::getline(file, unit)) {
    if (name == "MemAvailable:" || (with_swap && name == "SwapFree:")) {
      bytes = bytes.value_or(0) + 1024 * kibibytes;
    }
  }
  return bytes;
}

// How the two versions of control groups name the same.
struct Names {
  const char *limit, *used, *cached;
};
constexpr Names kVersions[] = {
    {"memory.max", "memory.current", "inactive_file"},
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}};

// Cached files count as used there, and are given up when memory is short.
int64_t reclaimable(const fs::path& group, const char* cached) {
  std::ifstream file(group / "memory.stat");
  std::string name;
  int64_t bytes = 0;
  while (file >> name >> bytes) {
    if (name == cached) return bytes;
  }
  return 0;
}

std::optional<int64_t> free_in_group(const fs::path& group, const Names& names) {
  const auto limit = number_in(group / names.limit);
  const auto used = number_in(group / names.used);
  if (!limit || !used) return std::nullopt;
  return std::max<int64_t>(0, *limit - *used + reclaimable(group, names.cached));
}

std::optional<int64_t> free_bytes(const fs::path& root, bool with_swap) {
  auto least = free_in_machine(root, with_swap);
  for (const auto& group : control_groups("memory", root)) {
    for (const auto& names : kVersions) {
      const auto bytes = free_in_group(group, names);
      if (bytes) least = std::min(least.value_or(*bytes), *bytes);
    }
  }
  return least;
}

}  // namespace

std::optional<int64_t> free_memory_bytes(const fs::path& root) {
  return free_bytes(root, true);
}

std::optional<int64_t> free_ram_bytes(const fs::path& root) {
  return free_bytes(root, false);
}

void require_free_ram(int64_t bytes, const std::string& what, const std::string& remedy,
                      const fs::path& root) {
  constexpr double kGigabyte = 1e9;
  const auto free = free_ram_bytes(root);
  if (!free || bytes <= *free) return;
  throw ConfigError(fmt::format(
      "{} needs {:.2f} GB of memory at least, and {:.2f} GB are free to this process: {}", what,
      static_cast<double>(bytes) / kGigabyte, static_cast<double>(*free) / kGigabyte, remedy));
}

}  // namespace farstep
