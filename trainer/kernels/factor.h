// The matrices of a product: what is multiplied, and where it goes.
#pragma once

#include <cstdint>

namespace farstep {

// A matrix of row-major values whose rows begin `stride` values after one another; `transposed`: it
// stands for the transpose of what lies there.
template <typename T>
struct Factor {
  const T* values = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

// Where a product goes, row-major; `add`: it is added to what is there.
struct Product {
  float* values = nullptr;
  int64_t stride = 0;
  bool add = false;
  // It is large, and nothing reads it soon: may be stored past the caches, which so keep the rest.
  bool past_cache = false;
};

}  // namespace farstep
