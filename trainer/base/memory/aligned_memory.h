// Memory that begins at a multiple of a power of 2, such as a page.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace farstep {

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedMemory = std::unique_ptr<std::byte, FreeMemory>;

// Returns memory that is not initialised. `bytes` is a multiple of `alignment`. Throws
// std::bad_alloc.
inline AlignedMemory aligned_memory(std::size_t bytes, std::size_t alignment) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedMemory(memory);
}

}  // namespace farstep
