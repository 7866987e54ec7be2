// Pinned host memory, which a GPU reads and writes while the host continues.
//
// Not thread-safe. The host must not use it while a copy is under way.
#pragma once

#include <cstddef>
#include <type_traits>

#include "trainer/cuda/cuda_check.h"

namespace farstep {

template <typename T>
class PinnedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Allocates `size` values, above 0, without initialising them.
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
