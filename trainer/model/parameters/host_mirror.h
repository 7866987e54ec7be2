// A tensor's values in host memory: on a CPU the tensor's own memory, on a GPU a copy.
//
// A reader pulls first; a writer pushes afterwards. On a CPU both cost nothing. On a GPU ranges
// travel through pinned memory. A push and a started pull only launch work, in order on the calling
// thread's stream, while training goes on.
//
// Memory besides the tensor's: on a GPU the last pulled and the last pushed range in pinned host
// memory, and the last pulled range on the GPU; after a pull() of everything, all of it in host
// memory. On a CPU the range of the last start_pull().
//
// Not thread-safe, except that another thread may call finish_pull() while one thread pushes.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace farstep {

class HostMirror {
 public:
  // Mirrors a contiguous fp32 tensor and shares it.
  explicit HostMirror(at::Tensor tensor);
  // Waits for transfers under way.
  ~HostMirror();
  HostMirror(HostMirror&&) noexcept;

  // Returns all values as the device has them now. The memory is the same in every call.
  std::span<float> pull();
  // Copies the values in the memory from pull() to the device.
  void push();

  // Returns `size` elements of the flat tensor from `begin` on, as the device has them now. The
  // memory is valid until the next pull of a range.
  std::span<float> pull(int64_t begin, int64_t size);
  // Writes `values` to the tensor from element `begin` on, before later work of the device. They
  // may be in the mirror's memory, and may change after the call.
  void push(int64_t begin, std::span<const float> values);

  // Do the same as pull() of a range, in two steps. The values are those after the device's present
  // work, even if they change before finish_pull(), which waits for them. One pull at a time.
  void start_pull(int64_t begin, int64_t size);
  std::span<float> finish_pull();

 private:
  class Transfers;
  void check_range(int64_t begin, int64_t size) const;
  // Returns the memory of all values; allocates it on first use.
  std::span<float> host();

  at::Tensor tensor_;
  at::Tensor host_;                       // tensor_ itself on a CPU
  at::Tensor pulled_;                     // the last pulled range
  std::optional<int64_t> started_;        // size of the pull under way
  std::unique_ptr<Transfers> transfers_;  // null on a CPU
};

}  // namespace farstep
