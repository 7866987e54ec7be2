// Measures the memory of a device and the largest micro-batch that fits, by real training steps.
//
// Not thread-safe: the thread that owns the device calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace farstep::heterogeneity {

// The share of the memory that must stay free during a step.
inline constexpr double kMemoryHeadRoom = 0.01;

// Returns the largest n in [0, limit] for which fits(n) is true. fits must be true up to some n and
// false beyond; fits(0) is assumed. Tries 1, 2, 4, ... until one does not fit, then bisects. Makes
// at most 2 log2(limit) + 2 calls, none with more than twice the result.
int64_t largest_that_fits(const std::function<bool(int64_t)>& fits, int64_t limit);

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Returns the memory that training may use.
  virtual int64_t bytes() const = 0;

  // Whether training steps on `sequences` at once stay within bytes() minus the head-room. Runs
  // `step` several times; it takes one step and builds the model if necessary. Leaves no cached
  // memory behind. Passes on errors other than a lack of memory.
  virtual bool holds(int64_t sequences, const std::function<void()>& step) = 0;
};

// The memory of a CPU slice. `bytes` is what training may use; without it, one of `cpu_slices`
// equal parts of the RAM that is free to this process.
//
// Nothing runs out before the machine does. What counts is by how much the resident memory of a
// forked copy of this process, files aside, grows at most. Model and allocator are as fresh there
// as in training, and nothing is left here. A step is not tried if smaller ones already show that
// it would exceed bytes() by over a twentieth. Throws DataError if /proc cannot be read.
std::unique_ptr<DeviceMemory> open_cpu_memory(std::optional<int64_t> bytes, int64_t cpu_slices);

// A device's own memory, as its allocator gives access to it.
struct DeviceHeap {
  std::function<int64_t()> free_bytes;
  // Holds so many bytes until the result is destroyed; throws if there are fewer.
  std::function<std::shared_ptr<void>(int64_t bytes)> occupy;
  std::function<void()> empty_cache;  // gives back what the allocator holds for later
};

// The memory of a device with a heap of its own, before anything of the training is on it. `bytes`
// is what training may use; without it, all that is free. The rest is held occupied during the
// steps, which then run out of memory or not.
std::unique_ptr<DeviceMemory> open_heap_memory(DeviceHeap heap, std::optional<int64_t> bytes);

}  // namespace farstep::heterogeneity
