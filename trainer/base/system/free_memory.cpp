#include "trainer/base/system/free_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

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

std::optional<int64_t> free_in_machine(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  std::string name, unit;
  int64_t kibibytes = 0;
  std::optional<int64_t> bytes;
  while (file >> name >> kibibytes && std::getline(file, unit)) {
    if (name == "MemAvailable:" || name == "SwapFree:") {
      bytes = bytes.value_or(0) + 1024 * kibibytes;
    }
  }
  return bytes;
}

// Cached files count as used there, and are given up when memory is short.
int64_t reclaimable(const fs::path& group) {
  std::ifstream file(group / "memory.stat");
  std::string name;
  int64_t bytes = 0;
  while (file >> name >> bytes) {
    if (name == "inactive_file") return bytes;
  }
  return 0;
}

std::optional<int64_t> free_in_group(const fs::path& group) {
  const auto limit = number_in(group / "memory.max");
  const auto used = number_in(group / "memory.current");
  if (!limit || !used) return std::nullopt;
  return std::max<int64_t>(0, *limit - *used + reclaimable(group));
}

// The process's group in the only hierarchy of control groups, version 2; empty without one.
std::string own_group(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return "";
}

}  // namespace

// The limit of every group above the process's own holds too.
std::optional<int64_t> free_memory_bytes(const fs::path& root) {
  auto least = free_in_machine(root);
  const auto take = [&](const std::optional<int64_t>& bytes) {
    if (bytes) least = std::min(least.value_or(*bytes), *bytes);
  };
  const auto top = root / "sys/fs/cgroup";
  auto group = fs::path(own_group(root));
  while (!group.empty()) {
    take(free_in_group(top / group));
    group = group.parent_path();
  }
  take(free_in_group(top));
  return least;
}

}  // namespace farstep
