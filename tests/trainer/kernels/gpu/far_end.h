// What the tests of blocks at the far end of large arrays share: arrays of which little is touched,
// and the choice of blocks. For a GPU that the CPU emulates.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/emulated_gpu/kernel_code.h"

namespace farstep {

// Zeros, of which the system gives memory to those that are touched alone.
template <typename T>
class SparseArray {
 public:
  explicit SparseArray(int64_t size) : bytes_(static_cast<std::size_t>(size) * sizeof(T)) {
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    values_ = static_cast<T*>(memory);
  }
  ~SparseArray() { ::munmap(values_, bytes_); }
  SparseArray(const SparseArray&) = delete;
  SparseArray& operator=(const SparseArray&) = delete;

  T* data() const { return values_; }
  T& operator[](int64_t i) const { return values_[i]; }
  // The last values become these, or are these.
  void end_with(const std::vector<T>& values) const {
    std::ranges::copy(values, values_ + bytes_ / sizeof(T) - values.size());
  }
  std::vector<T> last(std::size_t size) const {
    const T* const end = values_ + bytes_ / sizeof(T);
    return {end - size, end};
  }

 private:
  std::size_t bytes_;
  T* values_ = nullptr;
};

// While it lives, launches run the last `count` blocks along x alone.
class LastBlocks {
 public:
  explicit LastBlocks(unsigned count) {
    emulated_choice = [count](unsigned x, unsigned blocks) { return x + count >= blocks; };
  }
  ~LastBlocks() { emulated_choice = nullptr; }
  LastBlocks(const LastBlocks&) = delete;
  LastBlocks& operator=(const LastBlocks&) = delete;
};

}  // namespace farstep
