// Host memory that a GPU copies from and to while the host goes on.
//
// Not thread-safe; the host leaves it alone while a copy is under way.
#pragma once

#include <cstddef>
#include <type_traits>

#include "trainer/cuda/cuda_check.h"

namespace farstep {

template <typename T>
class PinnedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // `size` values, above 0, not initialised.
  explicit PinnedArray(std::size_t size) : size_(size) {
    FARSTEP_CUDA_CHECK(cudaMallocHost(&data_, size * sizeof(T)));
  }
  ~PinnedArray() { cudaFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;

  T* data() { return static_cast<T*>(data_); }
  std::size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  const std::size_t size_;
};

}  // namespace farstep
