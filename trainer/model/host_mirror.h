// A tensor's values in host memory: the tensor's own memory on a CPU, a copy of it elsewhere.
//
// Whoever reads pulls first, whoever has written pushes after; on a CPU both cost nothing. Not
// thread-safe.
#pragma once

#include <ATen/ATen.h>

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

 private:
  at::Tensor tensor_;
  at::Tensor host_;  // tensor_ itself on a CPU
};

}  // namespace farstep
