// Memory of the current GPU without LibTorch, for tests, benchmarks and small tables of kernels.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/cuda/cuda_check.h"

namespace farstep {

template <typename T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Allocates `size` values without initialising them. Throws OutOfDeviceMemory.
  explicit DeviceArray(std::size_t size) : size_(size) {
    if (size > 0) FARSTEP_CUDA_CHECK(cudaMalloc(&data_, size * sizeof(T)));
  }
  // Allocates a copy of `values`.
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) { upload(values); }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&&) = delete;

  T* data() { return static_cast<T*>(data_); }
  const T* data() const { return static_cast<const T*>(data_); }
  std::size_t size() const { return size_; }

  // Replaces all size() values, after earlier work of the GPU's default stream.
  void upload(std::span<const T> values) {
    FARSTEP_CHECK(values.size() == size_, "{} values for {} places", values.size(), size_);
    if (size_ > 0) {
      FARSTEP_CUDA_CHECK(
          cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice));
    }
  }
  // Returns all values, after earlier work of the GPU's default stream.
  std::vector<T> download() const {
    std::vector<T> values(size_);
    if (size_ > 0) {
      FARSTEP_CUDA_CHECK(
          cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    }
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace farstep
