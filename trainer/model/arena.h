// One piece of a device's memory, from which whoever works in it cuts arrays.
//
// Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>

#include "trainer/base/arena_cutter.h"

namespace farstep {

class Arena {
 public:
  explicit Arena(at::Device device) : device_(device) {}

  // What `layout` returns, which cuts all arrays it wants from the ArenaCutter it is given; called
  // twice, first to count. Arrays hold undefined values and are valid until the next call. Memory
  // is used again, and only grows.
  template <typename Layout>
  auto cut(const Layout& layout) {
    ArenaCutter counter(nullptr);
    layout(counter);
    if (bytes() < counter.bytes()) {
      memory_.reset();  // first: both at once might not fit
      memory_ = at::empty({counter.bytes()}, at::TensorOptions(device_).dtype(at::kByte));
    }
    ArenaCutter cutter(bytes() == 0 ? nullptr
                                    : static_cast<std::byte*>(memory_.mutable_data_ptr()));
    return layout(cutter);
  }

  int64_t bytes() const { return memory_.defined() ? memory_.numel() : 0; }

 private:
  const at::Device device_;
  at::Tensor memory_;  // bytes
};

}  // namespace farstep
