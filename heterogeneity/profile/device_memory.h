// The memory of a device, and how large a micro-batch it holds: found by real training steps.
//
// Not thread-safe: called by the thread that owns the device.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace farstep {

// The share of the memory that a step leaves free.
inline constexpr double kMemoryHeadRoom = 0.01;

// The largest n in [0, limit] for which fits(n) holds, if it holds up to there and not beyond;
// fits(0) is taken for granted. Tries 1, 2, 4, ... until one does not fit, then bisects: at most
// 2 log2(limit) + 2 calls, none of more than twice the result.
int64_t largest_that_fits(const std::function<bool(int64_t)>& fits, int64_t limit);

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Memory that training may use.
  virtual int64_t bytes() const = 0;

  // Whether training steps on `sequences` at once stay within bytes() less the head-room. Runs
  // `step`, which takes one and builds the model if there is none, several times; leaves nothing
  // cached behind. Errors other than a lack of memory pass through.
  virtual bool holds(int64_t sequences, const std::function<void()>& step) = 0;
};

// Opens the memory of `device` before anything of the training is on it. `bytes` is what training
// may use; without it, what is free: on a GPU all of it, on a CPU one of `cpu_slices` equal parts.
//
// On a GPU the rest is held occupied during the steps, which then run out of memory or not. On a
// CPU nothing runs out before the machine does: what counts is by how much the resident memory of a
// forked copy of this process, files aside, grows at most; model and allocator are as fresh there
// as in training, and nothing is left here. A step is not tried there if smaller ones already show
// that it would exceed bytes() by over a twentieth. Throws DataError if /proc cannot be read.
std::unique_ptr<DeviceMemory> open_device_memory(at::Device device, std::optional<int64_t> bytes,
                                                 int64_t cpu_slices);

}  // namespace farstep
