#include "heterogeneity/profile/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "trainer/base/error.h"

namespace farstep {

namespace {

constexpr double kHopelessExcess = 1.05;
constexpr double kMebibyte = 1 << 20;

int64_t usable(int64_t bytes) {
  return static_cast<int64_t>((1 - kMemoryHeadRoom) * static_cast<double>(bytes));
}

bool is_out_of_memory(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         text.find("out of memory") != text.npos || text.find("can't allocate memory") != text.npos;
}

// Runs `step`; false if memory ran out.
bool runs(const std::function<void()>& step) try {
  step();
  return true;
} catch (const c10::Error& error) {
  if (!is_out_of_memory(error)) throw;
  return false;
}

// The figure "NAME:  1234 kB" of a file of /proc, in bytes.
int64_t proc_bytes(const char* file, std::string_view name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line.substr(name.size()));
    int64_t kibibytes = 0;
    if (words >> kibibytes) return 1024 * kibibytes;
  }
  throw DataError(fmt::format("{}: has no figure {}", file, name));
}

class CpuMemory : public DeviceMemory {
 public:
  CpuMemory(std::optional<int64_t> bytes, int64_t slices)
      : bytes_(bytes ? *bytes : proc_bytes("/proc/meminfo", "MemAvailable:") / slices),
        base_bytes_(resident_bytes()) {}

  int64_t bytes() const override { return bytes_; }

  bool holds(int64_t sequences, const std::function<void()>& step) override {
    if (predict(sequences) > kHopelessExcess * static_cast<double>(bytes_)) return false;
    // What the first step sets up for good (the model, the libraries' own buffers) is no peak of
    // the steps that follow.
    if (taken_.empty() && !runs(step)) return false;
    reset_peak();
    const bool ran = runs(step);
    const int64_t taken = proc_bytes("/proc/self/status", "VmHWM:") - base_bytes_;
    malloc_trim(0);
    if (!ran) return false;
    spdlog::debug("a step on {} sequences takes {:.1f} MiB", sequences,
                  static_cast<double>(taken) / kMebibyte);
    taken_[sequences] = static_cast<double>(taken);
    return taken <= usable(bytes_);
  }

 private:
  static int64_t resident_bytes() { return proc_bytes("/proc/self/status", "VmRSS:"); }

  static void reset_peak() {
    malloc_trim(0);
    std::ofstream file("/proc/self/clear_refs");
    file << "5" << std::flush;
    if (!file) throw DataError("/proc/self/clear_refs: the peak of memory cannot be reset");
  }

  // By the line through the two largest steps below `sequences`; 0 without two.
  double predict(int64_t sequences) const {
    const auto next = taken_.lower_bound(sequences);
    if (std::distance(taken_.begin(), next) < 2) return 0;
    const auto [last, last_bytes] = *std::prev(next);
    const auto [first, first_bytes] = *std::prev(next, 2);
    return last_bytes + (last_bytes - first_bytes) * static_cast<double>(sequences - last) /
                            static_cast<double>(last - first);
  }

  const int64_t bytes_;
  const int64_t base_bytes_;
  std::map<int64_t, double> taken_;  // bytes by sequences
};

class GpuMemory : public DeviceMemory {
 public:
  GpuMemory(at::Device device, std::optional<int64_t> bytes) : device_(device) {
    at::empty({1}, device);  // brings LibTorch's allocator up
    empty_cache();
    free_bytes_ = free_bytes();
    bytes_ = std::min(bytes.value_or(free_bytes_), free_bytes_);
  }

  int64_t bytes() const override { return bytes_; }

  bool holds(int64_t /*sequences*/, const std::function<void()>& step) override {
    const bool ran = runs([&] {
      // What training may not use. The model may be on the device already.
      const auto occupied =
          at::empty({free_bytes_ - usable(bytes_)}, at::TensorOptions(device_).dtype(at::kByte));
      step();
    });
    empty_cache();
    return ran;
  }

 private:
  void empty_cache() const { at::getDeviceAllocator(device_.type())->emptyCache(); }
  int64_t free_bytes() const {
    const auto free_and_total =
        at::getDeviceAllocator(device_.type())->getMemoryInfo(device_.index());
    return static_cast<int64_t>(free_and_total.first);
  }

  const at::Device device_;
  int64_t free_bytes_ = 0, bytes_ = 0;
};

}  // namespace

std::optional<int64_t> largest_that_fits(const std::function<bool(int64_t)>& fits, int64_t limit,
                                         const std::stop_token& stop) {
  int64_t fitting = 0, too_large = limit + 1;
  bool has_failed = false;
  while (too_large - fitting > 1) {
    if (stop.stop_requested()) return std::nullopt;
    const int64_t tried = has_failed ? fitting + (too_large - fitting) / 2
                                     : std::min(std::max<int64_t>(1, 2 * fitting), limit);
    if (fits(tried)) {
      fitting = tried;
    } else {
      too_large = tried;
      has_failed = true;
    }
  }
  return fitting;
}

std::unique_ptr<DeviceMemory> open_device_memory(at::Device device, std::optional<int64_t> bytes,
                                                 int64_t cpu_slices) {
  if (device.is_cpu()) return std::make_unique<CpuMemory>(bytes, cpu_slices);
  return std::make_unique<GpuMemory>(device, bytes);
}

}  // namespace farstep
