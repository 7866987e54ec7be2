// One piece of a device's memory, from which whoever works in it cuts arrays.
//
// Not thread-safe.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>

namespace farstep {

// Hands out arrays one after the other; without memory it only counts.
class ArenaCutter {
 public:
  explicit ArenaCutter(std::byte* memory) : memory_(memory) {}

  // Sets `array` to room for so many values, aligned to 64 bytes; to null without memory.
  template <typename T>
  void cut(T*& array, int64_t values) {
    constexpr int64_t kAlignment = 64;
    array = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    const int64_t bytes = values * static_cast<int64_t>(sizeof(T));
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* const memory_;
  int64_t bytes_ = 0;
};

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
