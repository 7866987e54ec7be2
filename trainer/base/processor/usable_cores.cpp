#include "trainer/base/processor/usable_cores.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "trainer/base/processor/allowed_cores.h"
#include "trainer/base/system/control_groups.h"

namespace farstep {

namespace {

namespace fs = std::filesystem;

// Returns the quota of a group; nullopt if it has none: "max" in version 2, -1 in version 1.
std::optional<double> quota_of(const fs::path& group) {
  double quota = 0, period = 0;
  std::ifstream both(group / "cpu.max");
  if (!(both >> quota >> period)) {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

std::optional<double> core_quota(const fs::path& root) {
  std::optional<double> least;
  for (const auto& group : control_groups("cpu", root)) {
    const auto quota = quota_of(group);
    if (quota) least = std::min(least.value_or(*quota), *quota);
  }
  return least;
}

int64_t usable_cores(const fs::path& root) {
  const int64_t cores = std::ssize(allowed_cores());
  const auto quota = core_quota(root);
  return quota ? std::clamp<int64_t>(static_cast<int64_t>(*quota), 1, cores) : cores;
}

}  // namespace farstep
