// A block of a device's memory that is cut into arrays.
//
// Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>

#include "trainer/base/memory/arena_cutter.h"

namespace farstep {

class Arena {
 public:
  explicit Arena(at::Device device) : device_(device) {}

  // Returns the result of `layout`, which cuts all its arrays from the given ArenaCutter. Calls it
  // twice, first to count the bytes. Arrays are not initialised and are valid until the next call.
  // The memory is reused and only grows.
  template <typename Layout>
  auto cut(const Layout& layout) {
    ArenaCutter counter(nullptr);
    layout(counter);
    if (bytes() < counter.bytes()) {
      memory_.reset();  // before the new allocation, as both may not fit
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
