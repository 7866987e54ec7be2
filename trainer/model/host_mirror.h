// A tensor's values in host memory: the tensor's own memory on a CPU, a copy of it elsewhere.
//
// Whoever reads pulls first, whoever has written pushes after; on a CPU both cost nothing. Not
// thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

namespace farstep {

class HostMirror {
 public:
  // Of a contiguous fp32 tensor, which it shares.
  explicit HostMirror(at::Tensor tensor);

  // The values, as the device has them now; the memory stays where it is between calls.
  std::span<float> pull();
  // Makes the values in the memory that pull() gave the device's.
  void push();

  // The same for `size` elements from `begin` on of the flat tensor; the others stay as they are.
  std::span<float> pull(int64_t begin, int64_t size);
  // Makes `values` the tensor's from element `begin` on; they may lie in the mirror's memory.
  void push(int64_t begin, std::span<const float> values);

 private:
  // All of the host memory, made if need be.
  std::span<float> host();

  at::Tensor tensor_;
  at::Tensor host_;  // tensor_ itself on a CPU
};

}  // namespace farstep
