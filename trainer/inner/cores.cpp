// Slices of one machine that move between cores disturb each other's caches, and a planner sees
// that as noise. So each slice keeps to its cores. Threads inherit them, hence the order in which
// devices and threads are made.
#include "trainer/inner/cores.h"

#include <ATen/Parallel.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "trainer/base/error.h"

namespace farstep {

namespace {

void stay_on(const cpu_set_t& cores) {
  FARSTEP_CHECK(sched_setaffinity(0, sizeof cores, &cores) == 0, "sched_setaffinity: {}",
                std::strerror(errno));
}

}  // namespace

std::vector<Cores> assign_cores(std::span<const DeviceConfig> devices, bool pin,
                                const Cores& allowed) {
  std::vector<Cores> assigned;
  // Stated cores are taken first, so that pinned devices get none of them.
  std::set<int64_t> free(allowed.begin(), allowed.end());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    assigned.push_back(devices[i].cores);
    for (const int64_t core : devices[i].cores) {
      if (std::ranges::count(allowed, core) == 0) {
        throw ConfigError(
            fmt::format("devices[{}].cores: this process may not run on core {}", i, core));
      }
      free.erase(core);
    }
  }
  if (!pin) return assigned;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].kind != DeviceKind::kCpu || !assigned[i].empty()) continue;
    const auto threads = static_cast<std::size_t>(devices[i].threads);
    if (free.size() < threads) {
      throw ConfigError(fmt::format(
          "pin: devices[{}] has {} threads, but of the {} cores that this process may run on only "
          "{} are left; give the devices fewer threads, or set pin to false",
          i, threads, allowed.size(), free.size()));
    }
    const auto end = std::next(free.begin(), static_cast<std::ptrdiff_t>(threads));
    assigned[i].assign(free.begin(), end);
    free.erase(free.begin(), end);
  }
  return assigned;
}

std::string core_shortage(std::span<const DeviceConfig> devices, int64_t usable) {
  int64_t threads = 0;
  for (const auto& device : devices) {
    if (device.kind == DeviceKind::kCpu) threads += device.threads;
  }
  if (threads <= usable) return "";
  return fmt::format(
      "devices: the cpu devices have {} threads, but this process may keep {} {} busy, by its "
      "affinity and the quota of its control group; give the devices {} {} in all, or the process "
      "more cores",
      threads, usable, usable == 1 ? "core" : "cores", usable, usable == 1 ? "thread" : "threads");
}

void stay_on_cores(const Cores& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int64_t core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  stay_on(set);
  // One index for each of OpenMP's threads, so that each of them sets its own cores.
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t, int64_t) { stay_on(set); });
}

}  // namespace farstep
