// A tensor's values in host memory: the tensor's own memory on a CPU, a copy of it elsewhere.
//
// Whoever reads pulls first, whoever has written pushes after; on a CPU both cost nothing. On a GPU
// ranges travel by pinned memory: a push and a started pull only give the GPU work, in the order of
// the stream that the calling thread trains on, and training goes on meanwhile.
//
// Memory beside the tensor's, as far as it is used: on a GPU the range pulled last and the range
// pushed last in pinned host memory, and the former on the GPU again; once all was pulled, all of
// it in host memory. On a CPU the range whose pull was started.
//
// Not thread-safe, but finish_pull() may be another thread's, while one thread pushes.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace farstep {

class HostMirror {
 public:
  // Of a contiguous fp32 tensor, which it shares.
  explicit HostMirror(at::Tensor tensor);
  // Waits for transfers under way.
  ~HostMirror();
  HostMirror(HostMirror&&) noexcept;

  // The values, as the device has them now; the memory stays where it is between calls.
  std::span<float> pull();
  // Makes the values in the memory that pull() gave the device's.
  void push();

  // The `size` elements from `begin` on of the flat tensor as the device has them now, in memory
  // that holds until the next pull of a range.
  std::span<float> pull(int64_t begin, int64_t size);
  // Makes `values` the tensor's from element `begin` on, for all work given to the device after;
  // they may lie in the mirror's memory, and be changed when it returns.
  void push(int64_t begin, std::span<const float> values);

  // As pull() of a range, in two steps: the values are those that the work given to the device so
  // far leaves, whatever changes them before finish_pull(), which waits for them. One at a time.
  void start_pull(int64_t begin, int64_t size);
  std::span<float> finish_pull();

 private:
  class Transfers;
  void check_range(int64_t begin, int64_t size) const;
  // All of the host memory, made if need be.
  std::span<float> host();

  at::Tensor tensor_;
  at::Tensor host_;                       // tensor_ itself on a CPU
  at::Tensor pulled_;                     // the range pulled last, unless it is tensor_'s own
  std::optional<int64_t> started_;        // size of the pull under way
  std::unique_ptr<Transfers> transfers_;  // none on a CPU
};

}  // namespace farstep
