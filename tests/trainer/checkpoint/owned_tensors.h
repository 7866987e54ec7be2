// Named buffers with memory of their own, for tests.
#pragma once

#include <deque>
#include <random>
#include <string>
#include <vector>

#include "trainer/base/memory/named_buffers.h"

namespace farstep {

class OwnedTensors {
 public:
  // Adds a tensor of random bytes.
  void add(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
    auto& bytes =
        memory_.emplace_back(static_cast<std::size_t>(num_elements(shape)) * size_of(dtype));
    for (auto& byte : bytes) byte = static_cast<std::byte>(random_());
    buffers_.push_back({name, dtype, shape, bytes});
  }

  // Adds an F32 tensor of these values.
  void add_values(const std::string& name, const std::vector<int64_t>& shape,
                  const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    auto& memory = memory_.emplace_back(bytes.begin(), bytes.end());
    buffers_.push_back({name, DType::kF32, shape, memory});
  }

  // Tensors of the same names, dtypes and shapes, all zero.
  OwnedTensors zeros() const {
    OwnedTensors other;
    for (const auto& buffer : buffers_) {
      auto& bytes = other.memory_.emplace_back(buffer.bytes.size());
      other.buffers_.push_back({buffer.name, buffer.dtype, buffer.shape, bytes});
    }
    return other;
  }

  NamedBuffers& buffers() { return buffers_; }
  const NamedBuffers& buffers() const { return buffers_; }
  bool operator==(const OwnedTensors& other) const { return memory_ == other.memory_; }

 private:
  std::mt19937 random_{1};
  std::deque<std::vector<std::byte>> memory_;
  NamedBuffers buffers_;
};

// Tensors of all dtypes, with scalars, empty extents, odd sizes and an odd name among them.
inline OwnedTensors tensors_of_all_kinds() {
  OwnedTensors tensors;
  tensors.add("half.scalar", DType::kF16, {});
  tensors.add("a", DType::kF32, {3, 5});
  tensors.add("empty", DType::kF32, {0});
  tensors.add("empty.too", DType::kBF16, {4, 0, 2});
  tensors.add("scalar", DType::kF32, {});
  tensors.add("bf", DType::kBF16, {7});
  tensors.add("steps", DType::kI64, {1});
  tensors.add("deep", DType::kF16, {1, 1, 3, 1, 1});
  tensors.add("a \"name\" with \xC3\xA9", DType::kF32, {2});
  return tensors;
}

}  // namespace farstep
