// A list of named pieces of memory, which is the content of a checkpoint file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farstep {

enum class DType { kF32, kBF16, kF16, kI64 };

// Returns the bytes of one element.
std::size_t size_of(DType dtype);
// Returns the safetensors name of a dtype: F32, BF16, F16, I64.
std::string_view name_of(DType dtype);
// Throws DataError for any other name.
DType dtype_from_name(std::string_view name);

// A view of `bytes`; the maker of the list keeps the memory alive.
struct NamedBuffer {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<std::byte> bytes;  // contiguous, row-major, little-endian
};

using NamedBuffers = std::vector<NamedBuffer>;

// Returns a one-dimensional buffer of fp32 values.
NamedBuffer f32_buffer(std::string name, std::span<float> values);

// Returns the number of elements of a shape; 1 for a scalar.
int64_t num_elements(std::span<const int64_t> shape);

}  // namespace farstep
