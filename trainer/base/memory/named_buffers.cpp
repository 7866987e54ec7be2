// Types have the names of safetensors, so that files and messages about them need no translation.
#include "trainer/base/memory/named_buffers.h"

#include <array>
#include <utility>

#include "trainer/base/error.h"

namespace farstep {

namespace {

struct DTypeFacts {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

// In the order of the enum: its values are the indices.
constexpr std::array<DTypeFacts, 4> kDTypes{{{DType::kF32, "F32", 4},
                                             {DType::kBF16, "BF16", 2},
                                             {DType::kF16, "F16", 2},
                                             {DType::kI64, "I64", 8}}};

const DTypeFacts& facts_of(DType dtype) {
  return kDTypes.at(static_cast<std::size_t>(dtype));
}

}  // namespace

std::size_t size_of(DType dtype) {
  return facts_of(dtype).bytes;
}

std::string_view name_of(DType dtype) {
  return facts_of(dtype).name;
}

DType dtype_from_name(std::string_view name) {
  for (const auto& facts : kDTypes) {
    if (facts.name == name) return facts.dtype;
  }
  throw DataError(fmt::format("dtype '{}' is not one of F32, BF16, F16, I64", name));
}

NamedBuffer f32_buffer(std::string name, std::span<float> values) {
  return {.name = std::move(name),
          .dtype = DType::kF32,
          .shape = {std::ssize(values)},
          .bytes = std::as_writable_bytes(values)};
}

int64_t num_elements(std::span<const int64_t> shape) {
  // The empty product: a scalar has no extents and one element.
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

}  // namespace farstep
