// The largest micro-batch comes from real steps: no formula knows what an allocator keeps. A CPU
// has no limit of its own, so there the peak of a forked copy counts. A GPU fails at its limit, so
// there the memory that training may not use is occupied beforehand.
#include "heterogeneity/profile/device_memory.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "heterogeneity/profile/forked.h"
#include "trainer/base/error.h"
#include "trainer/base/memory/out_of_memory.h"
#include "trainer/base/system/free_memory.h"

namespace farstep::heterogeneity {

namespace {

// The first step builds the model and the optimizer's state; the second needs its memory beside
// them.
constexpr int kSteps = 3;  // later steps of a shape allocate nothing new
// A prediction this far above the limit is taken as certain: the machine could run out of memory.
// Memory does not grow evenly with the micro-batch (208 sequences took 274 MiB, 224 took 209;
// docs/results/planning.md), so predictions nearby are tried.
constexpr double kHopelessExcess = 1.05;
constexpr double kMebibyte = 1 << 20;

int64_t usable(int64_t bytes) {
  return static_cast<int64_t>((1 - kMemoryHeadRoom) * static_cast<double>(bytes));
}

// Runs `step` kSteps times; returns false if memory ran out.
bool run_steps(const std::function<void()>& step) try {
  for (int i = 0; i < kSteps; ++i) step();
  return true;
} catch (const std::exception& error) {
  if (!is_out_of_memory(error)) throw;
  return false;
}

// Figures of the kernel, because LibTorch's CPU allocator does not count its memory.
// Returns the value "NAME:  1234 kB" of a file in /proc, in bytes.
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

// Returns this process's resident memory (VmRSS) or its peak (VmHWM), without mapped files: they
// are the libraries' code, which a fork loads again.
int64_t own_bytes(std::string_view name) {
  constexpr const char* kStatus = "/proc/self/status";
  return proc_bytes(kStatus, name) - proc_bytes(kStatus, "RssFile:");
}

int64_t free_ram() {
  const auto bytes = free_ram_bytes();
  if (!bytes) throw DataError("/proc/meminfo: has no figure MemAvailable");
  return *bytes;
}

class CpuMemory : public DeviceMemory {
 public:
  CpuMemory(std::optional<int64_t> bytes, int64_t slices)
      : bytes_(bytes ? *bytes : free_ram() / slices) {}

  int64_t bytes() const override { return bytes_; }

  // In a copy, because a process's peak of memory never falls.
  bool holds(int64_t sequences, const std::function<void()>& step) override {
    if (predict(sequences) > kHopelessExcess * static_cast<double>(bytes_)) return false;
    std::optional<int64_t> taken;
    run_forked(
        [&step](const Tell& tell) {
          const int64_t before = own_bytes("VmRSS:");
          if (run_steps(step)) tell(std::to_string(own_bytes("VmHWM:") - before));
        },
        [&taken](const std::string& text) { taken = std::stoll(text); });
    // The system may have killed the copy for its memory; that counts as a lack of memory.
    if (!taken) return false;
    spdlog::debug("a step on {} sequences takes {:.1f} MiB", sequences,
                  static_cast<double>(*taken) / kMebibyte);
    taken_[sequences] = static_cast<double>(*taken);
    return *taken <= usable(bytes_);
  }

 private:
  // Extrapolates the line through the smallest and the largest measured step below `sequences`; 0
  // without two.
  double predict(int64_t sequences) const {
    const auto next = taken_.lower_bound(sequences);
    if (std::distance(taken_.begin(), next) < 2) return 0;
    const auto [first, first_bytes] = *taken_.begin();
    const auto [last, last_bytes] = *std::prev(next);
    return last_bytes + (last_bytes - first_bytes) * static_cast<double>(sequences - last) /
                            static_cast<double>(last - first);
  }

  const int64_t bytes_;
  std::map<int64_t, double> taken_;  // bytes by sequences
};

class HeapMemory : public DeviceMemory {
 public:
  HeapMemory(DeviceHeap heap, std::optional<int64_t> bytes) : heap_(std::move(heap)) {
    // The cache of earlier work would count as occupied.
    heap_.empty_cache();
    free_bytes_ = heap_.free_bytes();
    bytes_ = std::min(bytes.value_or(free_bytes_), free_bytes_);
  }

  int64_t bytes() const override { return bytes_; }

  // LibTorch's cache is emptied afterwards, so that trials do not affect each other.
  bool holds(int64_t /*sequences*/, const std::function<void()>& step) override {
    const bool held = run_steps([&, occupied = std::shared_ptr<void>()]() mutable {
      // What training may not use; by the second step the model is on the device as well.
      if (!occupied) occupied = heap_.occupy(free_bytes_ - usable(bytes_));
      step();
    });
    heap_.empty_cache();
    return held;
  }

 private:
  const DeviceHeap heap_;
  int64_t free_bytes_ = 0, bytes_ = 0;
};

}  // namespace

// Doubling before bisection: a trial that is far too large costs much time and memory. A trial is
// at most twice the result.
int64_t largest_that_fits(const std::function<bool(int64_t)>& fits, int64_t limit) {
  int64_t fitting = 0, too_large = limit + 1;
  bool has_failed = false;
  while (too_large - fitting > 1) {
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

std::unique_ptr<DeviceMemory> open_cpu_memory(std::optional<int64_t> bytes, int64_t cpu_slices) {
  return std::make_unique<CpuMemory>(bytes, cpu_slices);
}

std::unique_ptr<DeviceMemory> open_heap_memory(DeviceHeap heap, std::optional<int64_t> bytes) {
  return std::make_unique<HeapMemory>(std::move(heap), bytes);
}

}  // namespace farstep::heterogeneity
