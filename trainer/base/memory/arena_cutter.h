// Cuts one block of memory into arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace farstep {

// Hands out arrays one after the other. Without memory it only adds up their sizes.
class ArenaCutter {
 public:
  explicit ArenaCutter(std::byte* memory) : memory_(memory) {}

  // Sets `array` to room for `values` values, aligned to 64 bytes; to null if there is no memory.
  template <typename T>
  void cut(T*& array, int64_t values) {
    // A cache line, and the widest vector.
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

}  // namespace farstep
